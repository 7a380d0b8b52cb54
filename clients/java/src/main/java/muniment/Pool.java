package muniment;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Spreads calls over several connections to one server, which gives each to one of its workers.
 *
 * <p>A call takes the one with the fewest calls under way, the first of several, so that a program
 * that makes one call at a time has one connection.
 */
final class Pool extends Channel {
  private static final int CONNECTIONS = 4;

  /** Where the server is, and whether what is sent there is encrypted. */
  record Target(String address, boolean encrypted) {}

  private record Member(ManagedChannel channel, AtomicInteger underWay) {}

  private final List<Member> members;
  private final Target target;

  Pool(Target target, Supplier<ManagedChannel> open) {
    this.target = target;
    members =
        Stream.generate(() -> new Member(open.get(), new AtomicInteger()))
            .limit(CONNECTIONS)
            .toList();
  }

  @Override
  public <Q, R> ClientCall<Q, R> newCall(MethodDescriptor<Q, R> method, CallOptions options) {
    Member member = take();
    Departure departure = new Departure();
    CallOptions observed = options.withStreamTracerFactory(departure);
    return new SimpleForwardingClientCall<>(member.channel.newCall(method, observed)) {
      @Override
      public void start(Listener<R> responses, Metadata headers) {
        super.start(
            new SimpleForwardingClientCallListener<>(responses) {
              @Override
              public void onClose(Status status, Metadata trailers) {
                member.underWay.decrementAndGet();
                if (status.getCode() == Status.Code.DEADLINE_EXCEEDED && !departure.sent()) {
                  // gRPC waits without end for the first word of a server that has accepted.
                  member.channel.enterIdle();
                }
                super.onClose(Mistake.explained(status, target, departure.sent()), trailers);
              }
            },
            headers);
      }
    };
  }

  private synchronized Member take() {
    Member least = members.get(0);
    for (Member each : members) {
      if (each.underWay.get() < least.underWay.get()) {
        least = each;
      }
    }
    least.underWay.incrementAndGet();
    return least;
  }

  @Override
  public String authority() {
    return members.get(0).channel.authority();
  }

  boolean isShutdown() {
    return members.get(0).channel.isShutdown();
  }

  /** A server that restarts is otherwise found again after a second or more. */
  void connectSoon() {
    members.forEach(each -> each.channel.resetConnectBackoff());
  }

  /** Calls that are under way go on; others are refused. */
  void shutdown() {
    members.forEach(each -> each.channel.shutdown());
  }

  /** Ends calls, too. */
  void shutdownNow() {
    members.forEach(each -> each.channel.shutdownNow());
  }
}
