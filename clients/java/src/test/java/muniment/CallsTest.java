package muniment;

import static muniment.Failures.failure;
import static muniment.Failures.overloaded;
import static muniment.Failures.unavailable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Message;
import io.grpc.Context;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import muniment.v1.AddNoteEdit;
import muniment.v1.AddNoteRequest;
import muniment.v1.Classification;
import muniment.v1.EditNotesRequest;
import muniment.v1.GetMemoryRequest;
import muniment.v1.ImportPassagesResponse;
import muniment.v1.ImportProgress;
import muniment.v1.ListMemoriesRequest;
import muniment.v1.MemoryServiceGrpc;
import muniment.v1.NoteEdit;
import muniment.v1.OpenSessionResponse;
import muniment.v1.Session;
import muniment.v1.StorePassageRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a call sends, how often it is made, and what it comes to. */
class CallsTest {
  private static final Options MINUTE = Options.DEFAULT.withTimeout(Duration.ofMinutes(1));
  private static final Duration HOUR = Duration.ofHours(1);

  private FakeServer server;
  private HostClient host;
  private SessionClient session;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
    host = HostClient.connect(server.address(), "mk_host", MINUTE);
    session = host.session("ms_session");
  }

  @AfterEach
  void stop() {
    host.close();
    server.close();
  }

  private String authorization(String method) {
    return server.calls(method).get(0).authorization();
  }

  /**
   * Asserts what was left of a deadline of some seconds when the first call of a method arrived.
   */
  private void assertDeadline(double seconds, String method) {
    assertEquals(seconds, server.calls(method).get(0).secondsLeft(), 30);
  }

  @Test
  void eachClientSendsItsOwnCredential() {
    host.getAgent(r -> r.setAgentId("ada"));
    session.getMemory(r -> r.setKey("tea"));

    assertEquals("Bearer mk_host", authorization("GetAgent"));
    assertEquals("Bearer ms_session", authorization("GetMemory"));
  }

  @Test
  void halfOfASurrogatePairIsRefusedAndNotSent() {
    var half = "secret \ud83d";
    List<Runnable> calls =
        List.of(
            () -> session.getMemory(r -> r.setKey(half)),
            () -> session.saveMemory(r -> r.setKey("k").setContent("c").addTags(half)),
            () ->
                session.editNotes(
                    r ->
                        r.addEdits(
                            NoteEdit.newBuilder()
                                .setAdd(AddNoteEdit.newBuilder().setContent(half)))),
            () ->
                session.importPassages(
                    List.of(StorePassageRequest.newBuilder().setContent(half).build())));

    for (Runnable call : calls) {
      var refused = assertThrows(MunimentException.class, call::run);
      assertEquals(Code.INVALID_ARGUMENT, refused.code());
      assertTrue(refused.getMessage().contains("half of a surrogate pair"));
      assertFalse(refused.getMessage().contains("secret"));
    }
    // A refused call may have reached the server, but without its request. What is sent before an
    // answered call on the same connection arrives before it, too.
    session.getMemory(r -> r.setKey("whole"));
    assertEquals(
        List.of(GetMemoryRequest.newBuilder().setKey("whole").build()),
        server.calls("GetMemory").stream().flatMap(call -> call.requests().stream()).toList());
  }

  @Test
  void aWholePairIsSent() {
    session.saveMemory(r -> r.setKey("k").setContent("\ud83d\ude00"));

    assertEquals(1, server.calls("SaveMemory").size());
  }

  @Test
  void stubsOnTheChannelSendTheCredentialAndTheDeadline() {
    MemoryServiceGrpc.newBlockingStub(session.channel())
        .listMemories(ListMemoriesRequest.getDefaultInstance());

    assertEquals("Bearer ms_session", authorization("ListMemories"));
    assertDeadline(60, "ListMemories");
  }

  @Test
  void aStubKeepsADeadlineOfItsOwn() {
    MemoryServiceGrpc.newBlockingStub(session.channel())
        .withDeadlineAfter(HOUR)
        .listMemories(ListMemoriesRequest.getDefaultInstance());

    assertDeadline(3600, "ListMemories");
  }

  @Test
  void aCredentialThatNoHeaderCanCarryIsRefusedAndNotShown() {
    var error = assertThrows(IllegalArgumentException.class, () -> host.session("ms_secret\n"));

    assertFalse(error.getMessage().contains("secret"));
  }

  @Test
  void noClientShowsItsCredential() {
    assertFalse(host.toString().contains("mk_host"));
    assertFalse(session.toString().contains("ms_session"));
    assertFalse(session.channel().toString().contains("ms_session"));
  }

  @Test
  void everyCallHasADeadline() {
    session.getMemory(r -> r.setKey("tea"));
    session.importPassages(List.of());

    assertDeadline(60, "GetMemory");
    assertDeadline(60, "ImportPassages");
  }

  @Test
  void oneCallMayHaveAnother() {
    session.withTimeout(HOUR).getMemory(r -> r.setKey("tea"));
    host.withTimeout(HOUR).getAgent(r -> r.setAgentId("ada"));

    assertDeadline(3600, "GetMemory");
    assertDeadline(3600, "GetAgent");
  }

  /** Calls that may be repeated. */
  static Stream<Consumer<CallsTest>> safe() {
    return Stream.of(
        test -> test.session.getMemory(r -> r.setKey("tea")),
        test -> test.session.renderPrompt(r -> r.setIfNoneMatch("e")),
        test -> test.session.saveMemory(r -> r.setKey("tea").setContent("Assam")),
        test -> test.session.addNote(r -> r.setContent("tea")),
        test -> test.session.storePassage(r -> r.setContent("tea")),
        test -> test.session.editNotes(r -> r.addEdits(adding("tea")).addEdits(adding("milk"))),
        test -> test.session.editNotes(r -> r.setValidateOnly(true).addEdits(deleting())),
        test -> test.host.raiseTaint(r -> r.setSessionId("s")),
        test -> test.session.saveMemories(r -> r.addMemoriesBuilder().setKey("tea")),
        test -> test.host.updateAgent(r -> r.setAgentId("ada")));
  }

  @ParameterizedTest
  @MethodSource("safe")
  void whatIsSafeToRepeatIsRepeated(Consumer<CallsTest> call) {
    scriptAll(unavailable());

    call.accept(this);

    assertEquals(2, countAll());
  }

  /** Calls that a second time would do more, or answer differently. */
  static Stream<Consumer<CallsTest>> unsafe() {
    return Stream.of(
        test -> test.host.createAgent(r -> r.setAgentId("ada")),
        test -> test.host.openSession(r -> r.setAgentId("ada")),
        test -> test.host.deleteAgent(r -> r.setAgentId("ada")),
        test -> test.session.closeSession(),
        test -> test.session.deleteMemory(r -> r.setKey("tea")),
        test -> test.session.saveMemory(r -> r.setKey("tea").setContent("Assam").setEtag("e")),
        test -> test.session.deleteMemories(r -> r.setTag("drinks")),
        test -> test.session.saveMemories(r -> r.addMemoriesBuilder().setKey("tea").setEtag("e")),
        test -> test.session.deletePassages(r -> r.setThread("trip")),
        test -> test.session.editBlock(r -> r.setLabel("persona")),
        test -> test.session.editNotes(r -> r.addEdits(adding("tea")).addEdits(deleting())),
        test -> test.session.importPassages(List.of(StorePassageRequest.getDefaultInstance())));
  }

  @ParameterizedTest
  @MethodSource("unsafe")
  void whatIsNotSafeToRepeatIsMadeOnce(Consumer<CallsTest> call) {
    scriptAll(unavailable());

    var error = assertThrows(MunimentException.class, () -> call.accept(this));

    assertEquals(Code.UNAVAILABLE, error.code());
    assertEquals(1, countAll());
  }

  @Test
  void aCallIsRepeatedUntilItsDeadlineIsNear() {
    server.script(
        "GetMemory", Stream.generate(Failures::unavailable).limit(99).toArray(Message[]::new));
    var hurried = session.withTimeout(Duration.ofSeconds(6));

    assertThrows(MunimentException.class, () -> hurried.getMemory(r -> r.setKey("tea")));

    int calls = server.calls("GetMemory").size();
    assertTrue(5 <= calls && calls <= 10, calls + " calls");
  }

  @Test
  void withoutRetriesACallIsMadeOnce() {
    server.script("GetMemory", unavailable());
    try (var once = SessionClient.connect(server.address(), "ms_s", MINUTE.withoutRetries())) {
      assertThrows(MunimentException.class, () -> once.getMemory(r -> r.setKey("tea")));
    }

    assertEquals(1, server.calls("GetMemory").size());
  }

  /** Nothing was sent, so that every call may be made again. */
  @Test
  void anyCallWaitsForAServerThatIsNotThereYet() throws Exception {
    int port = freePort();
    try (var early = HostClient.connect("127.0.0.1:" + port, "mk_host", MINUTE)) {
      var call = CompletableFuture.runAsync(() -> early.createAgent(r -> r.setAgentId("ada")));
      Thread.sleep(600);
      try (var late = new FakeServer(port)) {
        call.get(30, TimeUnit.SECONDS);

        assertEquals(1, late.calls("CreateAgent").size());
      }
    }
  }

  /** Outside of the range from which Linux chooses: one of those could go to another test. */
  private static int freePort() throws IOException {
    for (int port = 20_000 + (int) (ProcessHandle.current().pid() % 10_000); ; port++) {
      try (var free = new ServerSocket(port)) {
        return free.getLocalPort();
      } catch (BindException taken) {
        continue;
      }
    }
  }

  /** The connection breaks after the call was sent: nobody knows what became of it. */
  @Test
  void whatWasLostOnItsWayIsNotSentAgain() throws Exception {
    try (var listener = new ServerSocket(0);
        var client =
            HostClient.connect("127.0.0.1:" + listener.getLocalPort(), "mk_host", MINUTE)) {
      var lost = CompletableFuture.runAsync(() -> lose(listener));

      var error =
          assertThrows(MunimentException.class, () -> client.createAgent(r -> r.setAgentId("ada")));

      assertEquals(Code.UNAVAILABLE, error.code());
      lost.get(30, TimeUnit.SECONDS);
    }
  }

  /** Begins as HTTP/2 does, with empty settings, and breaks off when it has the agent's id. */
  private static void lose(ServerSocket listener) {
    try (var connection = listener.accept()) {
      connection.getOutputStream().write(new byte[] {0, 0, 0, 4, 0, 0, 0, 0, 0});
      var got = new StringBuilder();
      while (got.indexOf("\n\3ada") < 0) {
        got.append((char) connection.getInputStream().read());
      }
    } catch (IOException broken) {
      throw new UncheckedIOException(broken);
    }
  }

  /** It has not been canceled here, so nobody knows what became of it. */
  @Test
  void aCallThatTheServerBreaksOffIsMadeAgain() {
    server.script("GetMemory", failure(Code.CANCELLED, ""));
    server.script("DeleteMemory", failure(Code.CANCELLED, ""));

    session.getMemory(r -> r.setKey("tea"));
    var error =
        assertThrows(MunimentException.class, () -> session.deleteMemory(r -> r.setKey("tea")));

    assertEquals(2, server.calls("GetMemory").size());
    assertEquals(Code.UNAVAILABLE, error.code());
    assertEquals(1, server.calls("DeleteMemory").size());
  }

  @Test
  void oneCallAtATimeHasOneConnectionAndCallsAtOnceHaveUpToFour() {
    session.getMemory(r -> r.setKey("tea"));
    session.getMemory(r -> r.setKey("tea"));
    assertEquals(1, server.connections());

    var barrier = new CountDownLatch(8);
    server.holdUntil(barrier);
    var calls =
        Stream.generate(
                () ->
                    CompletableFuture.runAsync(
                        () -> session.getMemory(r -> r.setKey("tea")),
                        command -> new Thread(command).start()))
            .limit(8)
            .toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(calls).join();

    assertEquals(4, server.connections());
  }

  @Test
  void aRepeatedNoteKeepsItsId() {
    server.script("AddNote", unavailable());

    session.addNote(r -> r.setContent("tea"));

    var ids =
        server.calls("AddNote").stream()
            .map(call -> ((AddNoteRequest) call.requests().get(0)).getNoteId())
            .collect(Collectors.toSet());
    assertEquals(1, ids.size());
    assertFalse(ids.contains(""));
  }

  @Test
  void anIdOfTheCallersIsKept() {
    session.editNotes(
        r -> r.addEdits(NoteEdit.newBuilder().setAdd(AddNoteEdit.newBuilder().setNoteId("mine"))));

    var request = (EditNotesRequest) server.calls("EditNotes").get(0).requests().get(0);
    assertEquals("mine", request.getEdits(0).getAdd().getNoteId());
  }

  @Test
  void overloadThatNamesATimeIsWaitedFor() {
    server.script("GetMemory", overloaded(Duration.ofMillis(200)));
    long start = System.nanoTime();

    session.getMemory(r -> r.setKey("tea"));

    assertTrue(System.nanoTime() - start >= Duration.ofMillis(200).toNanos());
    assertEquals(2, server.calls("GetMemory").size());
  }

  @Test
  void overloadThatNamesNoTimeIsTheLastWord() {
    server.script("GetMemory", failure(Code.RESOURCE_EXHAUSTED, "OVERLOADED"));

    assertThrows(MunimentException.class, () -> session.getMemory(r -> r.setKey("tea")));

    assertEquals(1, server.calls("GetMemory").size());
  }

  @Test
  void nothingIsWaitedForPastTheDeadline() {
    server.script("GetMemory", overloaded(HOUR));

    var error =
        assertThrows(MunimentException.class, () -> session.getMemory(r -> r.setKey("tea")));

    assertEquals(HOUR, error.retryAfter().orElseThrow());
    assertEquals(1, server.calls("GetMemory").size());
  }

  @Test
  void anInterruptedCallIsCanceledAndStaysInterrupted() {
    server.script("GetMemory", overloaded(Duration.ofSeconds(5)));
    Thread.currentThread().interrupt();

    var error =
        assertThrows(MunimentException.class, () -> session.getMemory(r -> r.setKey("tea")));

    assertTrue(Thread.interrupted());
    assertEquals(Code.CANCELLED, error.code());
  }

  @Test
  void anImportSendsAllInOrder() {
    var counts = ImportPassagesResponse.newBuilder().setStoredCount(100).build();
    server.script("ImportPassages", counts);

    var response = session.importPassages(passages(100)::iterator);

    assertEquals(counts, response);
    assertEquals(
        passages(100).map(passage -> passage.getContent()).toList(),
        server.calls("ImportPassages").get(0).requests().stream()
            .map(request -> ((muniment.v1.ImportPassagesRequest) request).getPassage().getContent())
            .toList());
  }

  @Test
  void anImportThatIsRefusedOnTheWaySaysHowFarItCame() {
    var progress = ImportProgress.newBuilder().setStoredCount(2).build();
    server.script("ImportPassages", failure(Code.ABORTED, "TAINT_CHANGED", progress));
    var refused = StorePassageRequest.newBuilder().setContent("refused").build();
    Iterator<StorePassageRequest> endless = Stream.generate(() -> refused).iterator();

    var error = assertThrows(MunimentException.class, () -> session.importPassages(() -> endless));

    assertEquals(progress, error.importProgress().orElseThrow());
  }

  /** It has not been canceled here. */
  @Test
  void anImportThatTheServerBreaksOffIsUnavailable() {
    server.script("ImportPassages", failure(Code.CANCELLED, ""));

    var error =
        assertThrows(MunimentException.class, () -> session.importPassages(passages(1)::iterator));

    assertEquals(Code.UNAVAILABLE, error.code());
    assertEquals(1, server.calls("ImportPassages").size());
  }

  @Test
  void anImportThatIsCanceledHereStaysCanceled() {
    try (var context = Context.current().withCancellation()) {
      Stream<StorePassageRequest> requests = passages(3).peek(passage -> context.cancel(null));

      var error =
          assertThrows(
              MunimentException.class,
              () -> context.run(() -> session.importPassages(requests::iterator)));

      assertEquals(Code.CANCELLED, error.code());
    }
  }

  @Test
  void whatThePassagesThrowEndsTheImport() throws Exception {
    Stream<StorePassageRequest> broken =
        passages(3).peek(passage -> failAfterArrival(passage.getContent()));

    assertThrows(
        UnsupportedOperationException.class, () -> session.importPassages(broken::iterator));

    assertFalse(server.calls("ImportPassages").get(0).whole().get(30, TimeUnit.SECONDS));
  }

  @Test
  void anOpenedSessionIsClosedWithItsClient() {
    var answer =
        Session.newBuilder()
            .setSessionId("s-1")
            .setTaint(Classification.CLASSIFICATION_PUBLIC)
            .setCeiling(Classification.CLASSIFICATION_INTERNAL)
            .build();
    server.script(
        "OpenSession",
        OpenSessionResponse.newBuilder().setToken("ms_opened").setSession(answer).build());

    try (SessionClient opened = host.openSession(r -> r.setAgentId("ada"))) {
      assertEquals("s-1", opened.sessionId());
      assertEquals(Optional.of(answer), opened.opened());
      assertEquals(opened.opened(), opened.withTimeout(HOUR).opened());
      assertEquals("ms_opened", opened.token());
    }

    assertEquals("Bearer ms_opened", authorization("CloseSession"));
  }

  @Test
  void aSessionThatIsOverAlreadyClosesQuietly() {
    server.script("OpenSession", OpenSessionResponse.newBuilder().setToken("ms_opened").build());
    server.script("CloseSession", failure(Code.UNAUTHENTICATED, "CREDENTIAL_INVALID"));

    host.openSession(r -> r.setAgentId("ada")).close();

    assertEquals(1, server.calls("CloseSession").size());
  }

  @Test
  void aSessionOfATokenStaysOpen() {
    assertEquals(Optional.empty(), session.opened());
    session.close();
    SessionClient.connect(server.address(), "ms_session").close();

    assertEquals(List.of(), server.calls("CloseSession"));
  }

  @Test
  void aClosedConnectionMakesNoCalls() {
    host.close();

    var error =
        assertThrows(MunimentException.class, () -> host.createAgent(r -> r.setAgentId("ada")));

    assertEquals(Code.UNAVAILABLE, error.code());
    assertTrue(error.getCause() instanceof StatusRuntimeException);
  }

  /** A contract that grows is noticed here. */
  @Test
  void everyMethodOfTheContractIsInAClient() {
    var offered =
        Stream.of(HostClient.class, SessionClient.class)
            .flatMap(client -> Arrays.stream(client.getMethods()))
            .map(java.lang.reflect.Method::getName)
            .collect(Collectors.toSet());

    var missing =
        Contract.METHODS.values().stream()
            .map(method -> method.getBareMethodName())
            .map(name -> name.substring(0, 1).toLowerCase() + name.substring(1))
            .filter(name -> !offered.contains(name))
            .toList();

    assertEquals(List.of(), missing);
  }

  @Test
  void settingsNameAnAuthority() {
    var environment =
        Map.of(
            "MUNIMENT_ADDRESS", "muniment.example:443",
            "MUNIMENT_HOST_KEY", "mk_h",
            "MUNIMENT_TLS_CA", " ca.pem\n");

    assertEquals("ca.pem", Settings.find(environment, Settings.HOST_KEY).ca());
  }

  @Test
  void anAuthorityNeedsACertificate(@TempDir Path folder) throws IOException {
    var file = Files.writeString(folder.resolve("ca.pem"), "-----BEGIN PRIVATE KEY-----");
    var settings = new Settings("muniment.example:443", "mk_h", file.toString());

    var refused = assertThrows(IllegalStateException.class, () -> settings.over(Options.DEFAULT));

    assertEquals("the file of MUNIMENT_TLS_CA holds no certificate in PEM", refused.getMessage());
  }

  @Test
  void settingsAreTakenWholeOrNotAtAll() {
    var whole = Map.of("MUNIMENT_ADDRESS", "localhost:1", "MUNIMENT_TOKEN", "ms_t\n");

    assertEquals(new Settings("localhost:1", "ms_t", ""), Settings.find(whole, Settings.TOKEN));
    assertThrows(IllegalStateException.class, () -> Settings.find(whole, Settings.HOST_KEY));
  }

  private static NoteEdit adding(String content) {
    return NoteEdit.newBuilder().setAdd(AddNoteEdit.newBuilder().setContent(content)).build();
  }

  private static NoteEdit deleting() {
    return NoteEdit.newBuilder()
        .setDelete(muniment.v1.DeleteNoteEdit.newBuilder().setNoteId("n-1"))
        .build();
  }

  private static Stream<StorePassageRequest> passages(int count) {
    return IntStream.range(0, count)
        .mapToObj(each -> StorePassageRequest.newBuilder().setContent("passage " + each).build());
  }

  /** Fails at the last passage, when the server has begun to listen. */
  private void failAfterArrival(String content) {
    if (content.equals("passage 2")) {
      while (server.calls("ImportPassages").isEmpty()) {
        Thread.onSpinWait();
      }
      throw new UnsupportedOperationException();
    }
  }

  private void scriptAll(Message answer) {
    Contract.METHODS.values().forEach(method -> server.script(method.getBareMethodName(), answer));
  }

  private int countAll() {
    return Contract.METHODS.values().stream()
        .mapToInt(method -> server.calls(method.getBareMethodName()).size())
        .sum();
  }
}
