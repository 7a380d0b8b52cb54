package muniment;

import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.BlockingClientCall;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Makes calls over a pool of connections with one credential: deadlines, retries, errors. */
final class Calls {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final Pool connection;
  private final Credential credential;
  private final Options options;
  private final Channel channel;

  Calls(Pool connection, Credential credential, Options options) {
    this.connection = connection;
    this.credential = credential;
    this.options = options;
    this.channel =
        ClientInterceptors.intercept(
            connection,
            new Authorization(credential),
            new DefaultDeadline(options.timeout()),
            new WholeTexts());
  }

  /** Connects when the first call is made. */
  static Calls connect(String address, String credential, Options options) {
    Credential checked = Credential.of(credential);
    return new Calls(Connection.open(address, options), checked, options);
  }

  /** The same connection with another credential. */
  Calls as(String credential) {
    return as(Credential.of(credential));
  }

  Calls as(Credential credential) {
    return new Calls(connection, credential, options);
  }

  /** The same connection with another deadline for each call. */
  Calls within(Duration timeout) {
    return new Calls(connection, credential, options.withTimeout(timeout));
  }

  /** For generated stubs: adds the credential, and the deadline where a call has none. */
  Channel channel() {
    return channel;
  }

  /** The response, or an error of ours. The deadline spans all attempts. */
  <Q extends Message, R> R call(MethodDescriptor<Q, R> method, Q request) {
    return call(method, request, deadline());
  }

  <Q extends Message, R> R call(MethodDescriptor<Q, R> method, Q request, Deadline deadline) {
    boolean safe = Repetition.isSafe(method, request);
    for (int attempt = 1; ; attempt++) {
      Attempt<Q, R> sent = new Attempt<>(method, request, deadline);
      try {
        return authorized(sent, deadline);
      } catch (MunimentException error) {
        if (!mayRetry(error, safe || !sent.mayHaveBegun)) {
          throw error;
        }
        pause(Repetition.pauseAfter(attempt), deadline, error);
      }
    }
  }

  /** Sends, and once more if the session had expired and could be renewed. */
  private <R> R authorized(Attempt<?, R> attempt, Deadline deadline) {
    try {
      return attempt.send();
    } catch (MunimentException refusal) {
      if (!credential.renewed(refusal, deadline)) {
        throw refusal;
      }
      return attempt.send();
    }
  }

  /** One attempt of a call, and whether the server may have begun it. */
  private final class Attempt<Q, R> {
    private final MethodDescriptor<Q, R> method;
    private final Q request;
    private final Deadline deadline;
    private boolean mayHaveBegun;

    Attempt(MethodDescriptor<Q, R> method, Q request, Deadline deadline) {
      this.method = method;
      this.request = request;
      this.deadline = deadline;
    }

    R send() {
      Departure departure = new Departure();
      CallOptions callOptions =
          CallOptions.DEFAULT.withDeadline(deadline).withStreamTracerFactory(departure);
      try {
        return ClientCalls.blockingUnaryCall(channel, method, callOptions, request);
      } catch (StatusRuntimeException failure) {
        MunimentException error =
            MunimentException.of(departure.sent() ? brokenOff(failure) : failure);
        mayHaveBegun = departure.sent() && !error.reasonName().equals(Credential.EXPIRED);
        throw error;
      }
    }
  }

  /** A call that is canceled, though not here, was broken off by a server that stops. */
  private static Exception brokenOff(Exception failure) {
    Status status = Status.fromThrowable(failure);
    boolean canceledHere =
        Thread.currentThread().isInterrupted() || Context.current().isCancelled();
    if (status.getCode() != Status.Code.CANCELLED || canceledHere) {
      return failure;
    }
    return Status.UNAVAILABLE
        .withDescription(status.getDescription())
        .withCause(failure)
        .asRuntimeException(Status.trailersFromThrowable(failure));
  }

  private boolean mayRetry(MunimentException error, boolean safe) {
    return options.retries() && safe && Repetition.mayPass(error) && !connection.isShutdown();
  }

  /**
   * The response to a stream, or an error of ours, or whatever the requests throw. Made once.
   *
   * <p>Requests are taken in the caller's thread, as fast as the server takes them.
   */
  <Q, R> R stream(MethodDescriptor<Q, R> method, Iterator<Q> requests) {
    return stream(method, requests, deadline());
  }

  /** The same for requests that may be sent again. The deadline spans all attempts. */
  <Q, R> R streamAgain(MethodDescriptor<Q, R> method, List<Q> requests) {
    Deadline deadline = deadline();
    for (int attempt = 1; ; attempt++) {
      try {
        return stream(method, requests.iterator(), deadline);
      } catch (MunimentException error) {
        if (!mayRetry(error, true)) {
          throw error;
        }
        pause(Repetition.pauseAfter(attempt), deadline, error);
      }
    }
  }

  private <Q, R> R stream(MethodDescriptor<Q, R> method, Iterator<Q> requests, Deadline deadline) {
    BlockingClientCall<Q, R> call =
        ClientCalls.blockingClientStreamingCall(
            channel, method, CallOptions.DEFAULT.withDeadline(deadline));
    try {
      boolean taken = true;
      while (taken && requests.hasNext()) {
        taken = write(call, requests.next());
      }
      call.halfClose();
      R response = call.read();
      call.read(); // what ends the call: nothing, or its status
      return response;
    } catch (StatusException failure) {
      throw MunimentException.of(brokenOff(failure));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw canceled(interrupted);
    } finally {
      // A stream that ends without being canceled is a whole one. After its end this does nothing.
      call.cancel("the requests came to no end", null);
    }
  }

  private static <Q> boolean write(BlockingClientCall<Q, ?> call, Q request)
      throws InterruptedException, StatusException {
    try {
      return call.write(request);
    } catch (StatusRuntimeException refused) { // by WholeTexts
      throw MunimentException.of(refused);
    }
  }

  void close() {
    connection.shutdown();
  }

  Deadline deadline() {
    return Deadline.after(options.timeout().toNanos(), TimeUnit.NANOSECONDS);
  }

  /** Waits, unless that would pass the deadline: then the error is the last word. */
  private void pause(Duration pause, Deadline deadline, MunimentException error) {
    Duration wait = error.retryAfter().map(pause::plus).orElse(pause);
    if (wait.compareTo(Duration.ofNanos(deadline.timeRemaining(TimeUnit.NANOSECONDS))) >= 0) {
      throw error;
    }
    connection.connectSoon();
    try {
      TimeUnit.NANOSECONDS.sleep(wait.toNanos());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw canceled(interrupted);
    }
  }

  /** As gRPC does where it waits itself. */
  static MunimentException canceled(InterruptedException interrupted) {
    return MunimentException.of(
        Status.CANCELLED
            .withDescription("Thread interrupted")
            .withCause(interrupted)
            .asRuntimeException());
  }

  /** No record, which would be printed with its credential. */
  private static final class Authorization implements ClientInterceptor {
    private final Credential credential;

    Authorization(Credential credential) {
      this.credential = credential;
    }

    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<R> responses, Metadata headers) {
          credential.fresh(options.getDeadline());
          if (!credential.token().isEmpty()) {
            headers.put(AUTHORIZATION, "Bearer " + credential.token());
          }
          super.start(responses, headers);
        }
      };
    }
  }

  private record DefaultDeadline(Duration timeout) implements ClientInterceptor {
    @Override
    public <Q, R> ClientCall<Q, R> interceptCall(
        MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
      boolean absent = options.getDeadline() == null;
      return next.newCall(
          method,
          absent ? options.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS) : options);
    }
  }
}
