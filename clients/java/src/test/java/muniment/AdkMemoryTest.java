package muniment;

import static muniment.Failures.failure;
import static muniment.Failures.overloaded;
import static muniment.Failures.quotaExceeded;
import static muniment.Failures.unavailable;
import static muniment.v1.Classification.CLASSIFICATION_INTERNAL;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.adk.memory.MemoryEntry;
import io.grpc.Status.Code;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import muniment.v1.CreateAgentResponse;
import muniment.v1.ErrorReason;
import muniment.v1.OpenSessionRequest;
import muniment.v1.OpenSessionResponse;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/**
 * What the memory services for ADK do when a server refuses a call: {@link AdkMemories} has the
 * rest.
 */
class AdkMemoryTest {
  private static final OpenSessionResponse OPENED =
      OpenSessionResponse.newBuilder().setToken("ms_opened").build();

  private FakeServer server;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
  }

  @AfterEach
  void stop() {
    server.close();
  }

  @Test
  void aMissingClientIsRefusedAtOnce() {
    List<Executable> adapters =
        List.of(
            () -> new MunimentMemoryService(null),
            () -> new MunimentSharedMemoryService(null, CLASSIFICATION_INTERNAL),
            () -> new MunimentChatMemoryStore(null),
            () -> new MunimentChatMemoryRepository(null));
    adapters.forEach(adapter -> assertThrows(NullPointerException.class, adapter));
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

  /** With the memory of an application. */
  private List<MemoryEntry> search() {
    try (var host = HostClient.connect(server.address(), "mh_host")) {
      return new MunimentSharedMemoryService(host, CLASSIFICATION_INTERNAL)
          .searchMemory("tea", "ada", "Assam")
          .blockingGet()
          .memories();
    }
  }

  /** With the memory of an application. */
  private void store() {
    try (var host = HostClient.connect(server.address(), "mh_host")) {
      new MunimentSharedMemoryService(host, CLASSIFICATION_INTERNAL)
          .addSessionToMemory(AdkMemories.conversation("one", "ada", "She likes Assam."))
          .blockingAwait();
    }
  }

  private List<Integer> counts(String... methods) {
    return List.of(methods).stream().map(method -> server.calls(method).size()).toList();
  }

  @Test
  void anAddIsMadeAgain() {
    server.script(
        "ImportPassages",
        overloaded(Duration.ofMillis(1)),
        unavailable(),
        failure(Code.CANCELLED, ""));

    add(Options.DEFAULT);

    var sent = server.calls("ImportPassages").stream().map(FakeServer.Call::requests).toList();
    assertEquals(4, sent.size());
    assertEquals(1, sent.get(0).size());
    assertEquals(1, sent.stream().distinct().count());
  }

  @Test
  void withoutRetriesAnAddIsMadeOnce() {
    server.script("ImportPassages", unavailable());

    assertThrows(MunimentException.class, () -> add(Options.DEFAULT.withoutRetries()));

    assertEquals(1, server.calls("ImportPassages").size());
  }

  @Test
  void anAddIsMadeAgainIfTheTaintIsRaisedMeanwhile() {
    var raised = failure(Code.ABORTED, "TAINT_CHANGED");
    server.script("ImportPassages", raised, raised, raised);

    add(Options.DEFAULT);

    // What the new taint reveals may say that more is deleted.
    assertEquals(List.of(4, 4), counts("ListMemories", "ImportPassages"));
  }

  @Test
  void anAddIsMadeAgainAtMostFourTimesIfTheTaintIsRaised() {
    var raised = failure(Code.ABORTED, "TAINT_CHANGED");
    server.script("ImportPassages", raised, raised, raised, raised, raised);

    var error = assertThrows(MunimentException.class, () -> add(Options.DEFAULT));

    assertEquals(ErrorReason.ERROR_REASON_TAINT_CHANGED, error.reason());
    assertEquals(5, server.calls("ImportPassages").size());
  }

  /** Nor does it count the agents of the tenant, as CreateAgent does. */
  @Test
  void aUserWhoHasAnAgentNeedsNoRoomForAnother() {
    server.script("CreateAgent", quotaExceeded("max_agents"));
    server.script("OpenSession", OPENED);

    search();

    assertEquals(
        List.of(1, 0, 1, 1),
        counts("OpenSession", "CreateAgent", "SearchPassages", "CloseSession"));
  }

  @Test
  void aNewUserGetsAnAgent() {
    server.script("OpenSession", failure(Code.NOT_FOUND, "AGENT_NOT_FOUND"), OPENED);
    server.script("CreateAgent", CreateAgentResponse.getDefaultInstance());

    store();

    assertEquals(
        List.of(2, 1, 1, 1),
        counts("OpenSession", "CreateAgent", "ImportPassages", "CloseSession"));
  }

  @Test
  void aSearchForANewUserFindsNothingAndCreatesNoAgent() {
    server.script("OpenSession", failure(Code.NOT_FOUND, "AGENT_NOT_FOUND"));

    assertEquals(List.of(), search());

    assertEquals(List.of(1, 0), counts("OpenSession", "CreateAgent"));
  }

  @Test
  void anAgentThatIsCreatedMeanwhileServesTheNewUser() {
    server.script("OpenSession", failure(Code.NOT_FOUND, "AGENT_NOT_FOUND"), OPENED);
    server.script("CreateAgent", failure(Code.ALREADY_EXISTS, "AGENT_EXISTS"));

    store();

    assertEquals(
        List.of(2, 1, 1, 1),
        counts("OpenSession", "CreateAgent", "ImportPassages", "CloseSession"));
  }

  @Test
  void aNewUserForWhomThereIsNoRoomIsRefused() {
    server.script("OpenSession", failure(Code.NOT_FOUND, "AGENT_NOT_FOUND"), OPENED);
    server.script("CreateAgent", quotaExceeded("max_agents"));

    var error = assertThrows(MunimentException.class, this::store);

    assertEquals(ErrorReason.ERROR_REASON_QUOTA_EXCEEDED, error.reason());
    assertEquals(List.of(1, 1), counts("OpenSession", "CreateAgent"));
  }

  @Test
  void noAgentIsCreatedIfASessionIsRefusedForAnotherReason() {
    var refused = failure(Code.PERMISSION_DENIED, "CEILING_EXCEEDED");
    server.script("OpenSession", refused, refused);

    for (Executable call : List.<Executable>of(this::search, this::store)) {
      var error = assertThrows(MunimentException.class, call);
      assertEquals(ErrorReason.ERROR_REASON_CEILING_EXCEEDED, error.reason());
    }

    assertEquals(List.of(2, 0), counts("OpenSession", "CreateAgent"));
  }

  @Test
  void aCallThatSucceededSucceedsEvenIfItsSessionCannotBeClosed() {
    server.script("OpenSession", OPENED);
    server.script("CloseSession", unavailable());

    search();

    assertEquals(List.of(1, 1), counts("SearchPassages", "CloseSession"));
    var opened = (OpenSessionRequest) server.calls("OpenSession").get(0).requests().get(0);
    assertEquals(60 * 60, opened.getTtl().getSeconds()); // and not a day
  }

  @Test
  void theFailureOfACallIsNotThatOfClosingItsSession() {
    server.script("OpenSession", OPENED);
    server.script("SearchPassages", failure(Code.INVALID_ARGUMENT, "FIELD_INVALID"));
    server.script("CloseSession", unavailable());

    var error = assertThrows(MunimentException.class, this::search);

    assertEquals(ErrorReason.ERROR_REASON_FIELD_INVALID, error.reason());
    assertEquals(1, server.calls("CloseSession").size());
  }
}
