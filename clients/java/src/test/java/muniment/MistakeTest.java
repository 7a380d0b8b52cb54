package muniment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status;
import io.grpc.Status.Code;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.ClosedChannelException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import muniment.v1.AgentServiceGrpc;
import muniment.v1.ListAgentsRequest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is said when no server is reached. */
class MistakeTest {
  private static final Options ONCE = Options.DEFAULT.withoutRetries();

  /** With retries. A test whose calls did not end at once would take too long. */
  private static final Options AT_ONCE = Options.DEFAULT.withTimeout(Duration.ofDays(1));

  @TempDir private Path folder;

  /** What a call fails with. */
  private static String mistake(String address, Options options) {
    try (var host = HostClient.connect(address, "mk_s3cret", options)) {
      var error =
          assertThrows(MunimentException.class, () -> host.getAgent(r -> r.setAgentId("ada")));
      assertEquals(Code.UNAVAILABLE, error.code());
      assertEquals("UNAVAILABLE: " + error.description(), error.getMessage());
      assertFalse(error.getMessage().contains("s3cret"));
      return error.description();
    }
  }

  /** A race in gRPC decides which of two statuses a broken connection gets: this is the rarer. */
  @Test
  void aChannelThatIsClosedIsAConnectionThatBroke() {
    var reset = new ClosedChannelException();
    reset.initCause(new IOException("Connection reset by peer"));
    Status closed = Status.UNKNOWN.withDescription("channel closed").withCause(reset);

    Status explained = Mistake.explained(closed, new Pool.Target("there:443", true), true);

    assertEquals(Status.Code.UNAVAILABLE, explained.getCode());
    assertEquals(
        "the connection to there:443 broke: Connection reset by peer", explained.getDescription());
  }

  /** What gRPC says of a call that arrives after the server has begun to stop. */
  @Test
  void aConnectionThatTheServerEndsBroke() {
    Status ended =
        Status.INTERNAL.withDescription(
            "Abrupt GOAWAY closed sent stream. HTTP/2 error code: INTERNAL_ERROR");

    Status explained = Mistake.explained(ended, new Pool.Target("there:443", true), true);

    assertEquals(Status.Code.UNAVAILABLE, explained.getCode());
    assertEquals("the connection to there:443 broke", explained.getDescription());
  }

  @Test
  void withoutTlsAtAPortWithTls() throws Exception {
    var certificates = new Certificates(folder);
    certificates.authority("ours");
    var here = certificates.server("here", "ours", "IP:127.0.0.1");
    try (var server = new FakeServer(0, here)) {
      assertEquals(
          "the server at "
              + server.address()
              + " expects TLS: turn TLS on by Options.withTls or MUNIMENT_TLS_CA",
          mistake(server.address(), AT_ONCE));
    }
  }

  /** Such as a proxy whose server is not up yet. */
  @Test
  void aServerThatClosesEachConnectionIsTriedAgain() throws Exception {
    var closed = new AtomicInteger();
    Thread closer;
    try (var listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      closer = new Thread(() -> closeEach(listener, closed));
      closer.start();
      String address = "127.0.0.1:" + listener.getLocalPort();
      String said = mistake(address, Options.DEFAULT.withTimeout(Duration.ofSeconds(2)));
      assertTrue(said.startsWith("no connection to " + address), said);
    }
    closer.join();
    // One of the first attempt, one that asks in TLS, and more.
    assertTrue(closed.get() >= 3, closed.toString());
  }

  private static void closeEach(ServerSocket listener, AtomicInteger closed) {
    while (!listener.isClosed()) {
      try (Socket socket = listener.accept()) {
        socket.shutdownOutput();
        closed.incrementAndGet();
      } catch (IOException closing) {
        return;
      }
    }
  }

  @Test
  void aServerThatClosesTheConnectionOfAClientWithTlsIsNotSaidToExpectIt() throws Exception {
    try (var listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Thread closer = new Thread(() -> closeFirst(listener));
      closer.start();
      String said = mistake("127.0.0.1:" + listener.getLocalPort(), ONCE.withTls());
      assertFalse(said.contains("expects TLS"), said);
      closer.join();
    }
  }

  /** As Muniment's server does with what is no TLS. */
  private static void closeFirst(ServerSocket listener) {
    try (Socket socket = listener.accept()) {
      socket.getInputStream().readNBytes(24); // the preface of HTTP/2
      socket.getInputStream().skip(socket.getInputStream().available()); // else it is a reset
      socket.shutdownOutput();
      socket.getInputStream().readAllBytes();
    } catch (IOException broken) {
      throw new IllegalStateException(broken);
    }
  }

  @Test
  void withTlsAtAPortWithout() throws Exception {
    Path ours = new Certificates(folder).authority("ours");
    try (var server = new FakeServer()) {
      assertEquals(
          "the server at "
              + server.address()
              + " does not speak TLS: connect without Options.withTls and MUNIMENT_TLS_CA, which is"
              + " possible on its own machine, or give the server a certificate",
          mistake(server.address(), AT_ONCE.withTls(ours)));
    }
  }

  @Test
  void aCertificateOfAnAuthorityThatIsNotTrusted() throws Exception {
    var certificates = new Certificates(folder);
    certificates.authority("ours");
    Path others = certificates.authority("others");
    var here = certificates.server("here", "ours", "IP:127.0.0.1");
    try (var server = new FakeServer(0, here)) {
      for (Options options : List.of(AT_ONCE.withTls(others), AT_ONCE.withTls())) {
        assertEquals(
            "the certificate of "
                + server.address()
                + " is signed by an authority that is not trusted: name the file of its authority"
                + " by Options.withTls or MUNIMENT_TLS_CA",
            mistake(server.address(), options));
      }
    }
  }

  @Test
  void aCertificateForAnotherName() throws Exception {
    var certificates = new Certificates(folder);
    Path ours = certificates.authority("ours");
    var elsewhere = certificates.server("elsewhere", "ours", "DNS:db.example");
    try (var server = new FakeServer(0, elsewhere)) {
      assertEquals(
          "the certificate of "
              + server.address()
              + " is for other names: connect to one of db.example",
          mistake(server.address(), AT_ONCE.withTls(ours)));
    }
  }

  @Test
  void aPortWhereNothingListens() throws Exception {
    String free;
    try (var server = new FakeServer()) {
      free = server.address();
    }
    for (String address : List.of(free, "unix:" + folder.resolve("no.sock"))) {
      assertEquals(
          "no connection to "
              + address
              + ": nothing listens there: is the server running, and is this its address?",
          mistake(address, ONCE));
    }
  }

  @Test
  void aHostThatDoesNotExist() {
    assertEquals(
        "no connection to muniment.invalid:443: its name was not found: check the address",
        mistake("muniment.invalid:443", ONCE.withTls()));
  }

  @Test
  void importsAndGeneratedStubsSaySoAsWell() {
    String address = "unix:" + folder.resolve("no.sock");
    try (var session = SessionClient.connect(address, "ms_token", ONCE)) {
      var error = assertThrows(MunimentException.class, () -> session.importPassages(List.of()));
      assertTrue(error.getMessage().contains("nothing listens there"), error.getMessage());
      var stub = AgentServiceGrpc.newBlockingStub(session.channel());
      var failure =
          assertThrows(
              RuntimeException.class,
              () -> stub.listAgents(ListAgentsRequest.getDefaultInstance()));
      assertTrue(failure.getMessage().contains("nothing listens there"), failure.getMessage());
    }
  }
}
