package muniment;

import static muniment.Failures.overloaded;
import static muniment.Failures.unavailable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the memory service for ADK does when a server is busy: {@link AdkMemories} has the rest. */
class AdkMemoryTest {
  private FakeServer server;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
    server.script("ImportPassages", overloaded(Duration.ofMillis(1)), unavailable());
  }

  @AfterEach
  void stop() {
    server.close();
  }

  private void add(Options options) {
    try (var session =
        SessionClient.connect(
            server.address(), "ms_session", options.withTimeout(Duration.ofMinutes(1)))) {
      new MunimentMemoryService(session)
          .addSessionToMemory(AdkMemories.conversation("one", "ada", "She likes Assam."))
          .blockingAwait();
    }
  }

  @Test
  void anAddIsMadeAgain() {
    add(Options.DEFAULT);

    var sent = server.calls("ImportPassages").stream().map(FakeServer.Call::requests).toList();
    assertEquals(3, sent.size());
    assertEquals(1, sent.get(0).size());
    assertEquals(1, sent.stream().distinct().count());
  }

  @Test
  void withoutRetriesAnAddIsMadeOnce() {
    assertThrows(MunimentException.class, () -> add(Options.DEFAULT.withoutRetries()));

    assertEquals(1, server.calls("ImportPassages").size());
  }
}
