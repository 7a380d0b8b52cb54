package muniment;

import com.google.protobuf.Message;
import com.google.rpc.Status;
import io.grpc.Attributes;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Grpc;
import io.grpc.HandlerRegistry;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCallHandler;
import io.grpc.ServerCredentials;
import io.grpc.ServerMethodDefinition;
import io.grpc.ServerTransportFilter;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A server that answers what a test tells it to, and remembers what it was asked. */
final class FakeServer extends HandlerRegistry implements AutoCloseable {
  /**
   * One call that came in. It is whole when its requests came to an end, and not when it was
   * canceled.
   */
  record Call(
      Metadata headers,
      double secondsLeft,
      List<Message> requests,
      CompletableFuture<Boolean> whole) {
    Call(Metadata headers, double secondsLeft) {
      this(headers, secondsLeft, new CopyOnWriteArrayList<>(), new CompletableFuture<>());
    }

    String authorization() {
      return headers.get(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER));
    }
  }

  private final Map<String, Queue<Message>> answers = new ConcurrentHashMap<>();
  private final Map<String, List<Call>> calls = new ConcurrentHashMap<>();
  private final AtomicInteger connections = new AtomicInteger();
  private final AtomicInteger answered = new AtomicInteger();
  private volatile boolean numbersAnswers;
  private volatile CountDownLatch barrier = new CountDownLatch(0);
  private final Server server;

  FakeServer() throws IOException {
    this(0);
  }

  FakeServer(int port) throws IOException {
    this(port, InsecureServerCredentials.create());
  }

  FakeServer(int port, ServerCredentials credentials) throws IOException {
    server =
        Grpc.newServerBuilderForPort(port, credentials)
            .fallbackHandlerRegistry(this)
            .addTransportFilter(new Counter(connections))
            .build()
            .start();
  }

  String address() {
    return "127.0.0.1:" + server.getPort();
  }

  /** The next answers to a method: responses, or statuses that it fails with. Then empty ones. */
  void script(String method, Message... messages) {
    answers.computeIfAbsent(method, name -> new ArrayDeque<>()).addAll(List.of(messages));
  }

  /** How many connections there have been. */
  int connections() {
    return connections.get();
  }

  /** From now on, answers have request ids: r-1, r-2 and so on. */
  void numberAnswers() {
    numbersAnswers = true;
  }

  /** From now on, answers no call until so many have come. */
  void holdUntil(CountDownLatch barrier) {
    this.barrier = barrier;
  }

  /** The calls of a method, in order. */
  List<Call> calls(String method) {
    return calls.getOrDefault(method, List.of());
  }

  @Override
  public ServerMethodDefinition<?, ?> lookupMethod(String fullName, String authority) {
    String name = fullName.substring("muniment.v1.".length()).replace('/', '.');
    MethodDescriptor<Message, Message> method = Contract.METHODS.get(name);
    return ServerMethodDefinition.create(
        method, (call, headers) -> handler(method, headers).startCall(call, headers));
  }

  private ServerCallHandler<Message, Message> handler(
      MethodDescriptor<Message, Message> method, Metadata headers) {
    Call call = new Call(headers, secondsLeft());
    calls
        .computeIfAbsent(method.getBareMethodName(), name -> new CopyOnWriteArrayList<>())
        .add(call);
    return method.getType() == MethodType.UNARY
        ? ServerCalls.asyncUnaryCall(
            (request, responses) -> {
              call.requests.add(request);
              answer(method, responses);
            })
        : ServerCalls.asyncClientStreamingCall(
            responses -> new Collector(call, () -> answer(method, responses)));
  }

  /** What is left of the deadline of the call that is coming in. Endless: it has none. */
  private static double secondsLeft() {
    Deadline deadline = Context.current().getDeadline();
    return deadline == null
        ? Double.POSITIVE_INFINITY
        : deadline.timeRemaining(TimeUnit.MILLISECONDS) / 1000.0;
  }

  private void answer(
      MethodDescriptor<Message, Message> method, StreamObserver<Message> responses) {
    await();
    Message scripted = answers.getOrDefault(method.getBareMethodName(), new ArrayDeque<>()).poll();
    if (scripted instanceof Status status) {
      responses.onError(StatusProto.toStatusRuntimeException(status, trailers()));
    } else {
      responses.onNext(scripted == null ? Contract.response(method) : scripted);
      responses.onCompleted();
    }
  }

  private Metadata trailers() {
    Metadata trailers = new Metadata();
    if (numbersAnswers) {
      trailers.put(
          Metadata.Key.of("request-id", Metadata.ASCII_STRING_MARSHALLER),
          "r-" + answered.incrementAndGet());
    }
    return trailers;
  }

  private void await() {
    barrier.countDown();
    try {
      barrier.await();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static final class Counter extends ServerTransportFilter {
    private final AtomicInteger connections;

    Counter(AtomicInteger connections) {
      this.connections = connections;
    }

    @Override
    public Attributes transportReady(Attributes attributes) {
      connections.incrementAndGet();
      return attributes;
    }
  }

  @Override
  public void close() {
    server.shutdownNow();
  }

  /** Collects a stream of requests. The content "refused" makes it answer before the end. */
  private static final class Collector implements StreamObserver<Message> {
    private final Call call;
    private final Runnable answer;
    private boolean answered;

    Collector(Call call, Runnable answer) {
      this.call = call;
      this.answer = answer;
    }

    @Override
    public void onNext(Message request) {
      call.requests.add(request);
      if (request.toString().contains("refused")) {
        answerOnce();
      }
    }

    @Override
    public void onError(Throwable canceled) {
      call.whole.complete(false);
    }

    @Override
    public void onCompleted() {
      call.whole.complete(true);
      answerOnce();
    }

    private void answerOnce() {
      if (!answered) {
        answered = true;
        answer.run();
      }
    }
  }
}
