package muniment;

import static muniment.Failures.failure;
import static muniment.Failures.unavailable;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.Message;
import com.google.protobuf.Timestamp;
import com.google.rpc.Status;
import io.grpc.Status.Code;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import muniment.v1.Classification;
import muniment.v1.CloseSessionRequest;
import muniment.v1.ConversationTainted;
import muniment.v1.GetSessionRequest;
import muniment.v1.GetSessionResponse;
import muniment.v1.Integrity;
import muniment.v1.OpenSessionRequest;
import muniment.v1.OpenSessionResponse;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.RaiseTaintResponse;
import muniment.v1.ResetSessionRequest;
import muniment.v1.ResetSessionResponse;
import muniment.v1.Session;
import muniment.v1.StorePassageRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Sessions that their host opens again. */
class ConversationTest {
  private static final int HOUR = 3600;
  private static final Status EXPIRED = failure(Code.UNAUTHENTICATED, "CREDENTIAL_EXPIRED");
  private static final Status INVALID = failure(Code.UNAUTHENTICATED, "CREDENTIAL_INVALID");
  private static final Status GONE = failure(Code.NOT_FOUND, "SESSION_NOT_FOUND");
  private static final Status INTERNAL = failure(Code.INTERNAL, "INTERNAL");

  private FakeServer server;
  private HostClient host;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
    host = HostClient.connect(server.address(), "mk_host");
  }

  @AfterEach
  void stop() {
    host.close();
    server.close();
  }

  private static Status tainted(Classification taint) {
    var detail = ConversationTainted.newBuilder().setTaint(taint).build();
    return failure(Code.FAILED_PRECONDITION, "CONVERSATION_TAINTED", detail);
  }

  private static Timestamp at(long seconds) {
    return Timestamp.newBuilder().setSeconds(seconds).build();
  }

  /** A session s1, s2 and so on. */
  private static Session session(int number, int seconds, Classification taint) {
    return Session.newBuilder()
        .setSessionId("s" + number)
        .setAgentId("ada")
        .setConversationId("chat-42")
        .setTaint(taint)
        .setCreateTime(at(1000))
        .setExpireTime(at(1000 + seconds))
        .build();
  }

  /** The answer to OpenSession that gives a token ms_1, ms_2 and so on. */
  private static Message opened(int number, int seconds) {
    Session session = session(number, seconds, Classification.CLASSIFICATION_PUBLIC);
    return OpenSessionResponse.newBuilder().setToken("ms_" + number).setSession(session).build();
  }

  private void found(Session session) {
    server.script("GetSession", GetSessionResponse.newBuilder().setSession(session).build());
  }

  /** A conversation whose session s1 has so many seconds, and whose next has an hour. */
  private Conversation conversation(int seconds) {
    server.script("OpenSession", opened(1, seconds));
    Conversation conversation = host.conversation("ada", "chat-42");
    found(session(1, seconds, Classification.CLASSIFICATION_INTERNAL));
    server.script("OpenSession", opened(2, HOUR));
    return conversation;
  }

  private void save(SessionClient session) {
    session.saveMemory(r -> r.setKey("tea").setContent("Assam"));
  }

  private String failureOf(SessionClient session) {
    return assertThrows(MunimentException.class, () -> save(session)).reasonName();
  }

  private List<String> credentials(String method) {
    return server.calls(method).stream()
        .map(call -> call.authorization().replaceFirst("Bearer ", ""))
        .toList();
  }

  private <R> List<R> requests(String method, Class<R> kind) {
    return server.calls(method).stream().map(call -> kind.cast(call.requests().get(0))).toList();
  }

  private List<Classification> taints() {
    return requests("OpenSession", OpenSessionRequest.class).stream()
        .map(OpenSessionRequest::getTaint)
        .toList();
  }

  private List<String> closed() {
    return requests("CloseSession", CloseSessionRequest.class).stream()
        .map(CloseSessionRequest::getSessionId)
        .toList();
  }

  @Test
  void aSessionWithLittleTimeIsOpenedAgainAtTheTaintOfItsConversation() {
    Conversation conversation = conversation(0);

    save(conversation);
    save(conversation);

    assertEquals(List.of("ms_2", "ms_2"), credentials("SaveMemory"));
    assertEquals(List.of("mk_host", "mk_host"), credentials("OpenSession"));
    assertEquals(
        List.of(Classification.CLASSIFICATION_UNSPECIFIED, Classification.CLASSIFICATION_INTERNAL),
        taints());
    assertEquals("s1", requests("GetSession", GetSessionRequest.class).get(0).getSessionId());
    assertEquals("ms_2", conversation.token());
    assertEquals("s2", conversation.sessionId());
    assertEquals("s2", conversation.opened().orElseThrow().getSessionId());
  }

  @Test
  void aSessionIsRenewedWhenAQuarterOfItsTimeIsLeft() {
    Session session = session(1, HOUR, Classification.CLASSIFICATION_PUBLIC);
    assertEquals(Duration.ofMinutes(45).toNanos(), Renewals.usedNanos(session));
  }

  @Test
  void eachSessionIsOpenedWithTheTimeThatWasAskedFor() {
    var minute = com.google.protobuf.Duration.newBuilder().setSeconds(60).build();
    server.script("OpenSession", opened(1, 0), opened(2, HOUR));
    found(session(1, 0, Classification.CLASSIFICATION_INTERNAL));

    save(host.conversation(r -> r.setAgentId("ada").setConversationId("chat-42").setTtl(minute)));

    for (var request : requests("OpenSession", OpenSessionRequest.class)) {
      assertEquals("ada chat-42", request.getAgentId() + " " + request.getConversationId());
      assertEquals(minute, request.getTtl());
    }
    assertEquals(2, server.calls("OpenSession").size());
  }

  @Test
  void aSessionThatCannotBeRenewedInTimeGoesOnWithItsToken() {
    server.script("OpenSession", opened(1, 0), INTERNAL, opened(2, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    found(session(1, 0, Classification.CLASSIFICATION_PUBLIC));
    found(session(1, 0, Classification.CLASSIFICATION_PUBLIC));

    save(conversation);
    save(conversation);

    assertEquals(List.of("ms_1", "ms_2"), credentials("SaveMemory"));
  }

  @Test
  void aCallWhoseTokenHasExpiredIsMadeAgainOnceWhateverItIs() {
    Conversation conversation = conversation(HOUR);
    server.script("DeleteMemory", EXPIRED);
    conversation.deleteMemory(r -> r.setKey("tea"));
    assertEquals(List.of("ms_1", "ms_2"), credentials("DeleteMemory"));

    server.script("SaveMemory", EXPIRED, EXPIRED);
    server.script("OpenSession", opened(3, HOUR));
    found(session(2, HOUR, Classification.CLASSIFICATION_PUBLIC));
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(List.of("ms_2", "ms_3"), credentials("SaveMemory"));
  }

  @Test
  void aServerThatIsSetBackToBeforeARaiseIsNoticed() {
    Session raised = session(1, HOUR, Classification.CLASSIFICATION_CONFIDENTIAL);
    Conversation conversation = conversation(HOUR);
    server.script("RaiseTaint", RaiseTaintResponse.newBuilder().setSession(raised).build());
    conversation.raiseTaint(Classification.CLASSIFICATION_CONFIDENTIAL, "read the payroll");
    found(session(1, HOUR, Classification.CLASSIFICATION_PUBLIC));
    server.script("SaveMemory", EXPIRED, EXPIRED);

    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    found(raised.toBuilder().setIntegrity(Integrity.INTEGRITY_TRUSTED).build());
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(List.of("ms_1", "ms_1"), credentials("SaveMemory"));
  }

  @Test
  void callsThatExpireTogetherWaitForOneRenewal() {
    Conversation conversation = conversation(HOUR);
    server.script("SaveMemory", EXPIRED, EXPIRED, EXPIRED);
    server.holdUntil(new CountDownLatch(3));

    List<CompletableFuture<Void>> calls = new ArrayList<>();
    for (int call = 0; call < 3; call++) {
      calls.add(
          CompletableFuture.runAsync(() -> save(conversation), task -> new Thread(task).start()));
    }
    calls.forEach(CompletableFuture::join);

    assertEquals(2, server.calls("OpenSession").size());
    assertEquals(6, server.calls("SaveMemory").size());
  }

  @Test
  void aSessionThatSomebodyHasEndedIsNotOpenedAgain() {
    server.script("OpenSession", opened(1, HOUR), opened(2, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    Session session = session(1, HOUR, Classification.CLASSIFICATION_PUBLIC);
    server.script("SaveMemory", EXPIRED, EXPIRED, EXPIRED);

    server.script("GetSession", GONE);
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    found(session.toBuilder().setCloseTime(at(9000)).build());
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(1, server.calls("OpenSession").size());

    found(session.toBuilder().setCloseTime(session.getExpireTime()).build());
    save(conversation);
    assertEquals(List.of("ms_1", "ms_1", "ms_1", "ms_2"), credentials("SaveMemory"));
  }

  @Test
  void onlyTheSessionOfAConversationIsRenewedAndOnlyIfItHasExpired() {
    Conversation conversation = conversation(HOUR);
    server.script("SaveMemory", INVALID, EXPIRED);

    assertEquals("CREDENTIAL_INVALID", failureOf(conversation));
    assertEquals("CREDENTIAL_EXPIRED", failureOf(host.session("ms_other")));
    assertEquals(1, server.calls("OpenSession").size());
  }

  @Test
  void aRaiseBetweenTwoStepsOfARenewalIsFollowedAtMostFourTimes() {
    server.script("OpenSession", opened(1, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    Status[] raises =
        Stream.of(
                Classification.CLASSIFICATION_INTERNAL,
                Classification.CLASSIFICATION_CONFIDENTIAL,
                Classification.CLASSIFICATION_RESTRICTED)
            .map(ConversationTest::tainted)
            .toArray(Status[]::new);
    server.script("SaveMemory", EXPIRED, EXPIRED);
    for (int call = 0; call < 2; call++) {
      found(session(1, HOUR, Classification.CLASSIFICATION_PUBLIC));
      server.script("OpenSession", raises);
      server.script("OpenSession", raises[2]);
      server.script("OpenSession", call == 0 ? raises[2] : opened(2, HOUR));
    }

    assertEquals("CONVERSATION_TAINTED", failureOf(conversation));
    save(conversation);

    List<Classification> renewal =
        List.of(
            Classification.CLASSIFICATION_PUBLIC,
            Classification.CLASSIFICATION_INTERNAL,
            Classification.CLASSIFICATION_CONFIDENTIAL,
            Classification.CLASSIFICATION_RESTRICTED,
            Classification.CLASSIFICATION_RESTRICTED);
    assertEquals(renewal, taints().subList(1, 6));
    assertEquals(renewal, taints().subList(6, 11));
  }

  @Test
  void aRefusalWithoutATaintIsNotFollowed() {
    server.script("OpenSession", opened(1, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    found(session(1, HOUR, Classification.CLASSIFICATION_PUBLIC));
    server.script("SaveMemory", EXPIRED);
    server.script("OpenSession", failure(Code.FAILED_PRECONDITION, "CONVERSATION_TAINTED"));

    assertEquals("CONVERSATION_TAINTED", failureOf(conversation));
    assertEquals(2, server.calls("OpenSession").size());
  }

  @Test
  void aRenewalThatFindsNoServerIsTriedAgainWithTheCallThatHasNotBegun() {
    server.script("OpenSession", opened(1, HOUR), unavailable(), opened(2, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    found(session(1, HOUR, Classification.CLASSIFICATION_PUBLIC));
    found(session(1, HOUR, Classification.CLASSIFICATION_PUBLIC));
    server.script("DeleteMemory", EXPIRED, EXPIRED);

    conversation.deleteMemory(r -> r.setKey("tea"));

    assertEquals(List.of("ms_1", "ms_1", "ms_2"), credentials("DeleteMemory"));
  }

  @Test
  void aListGoesOnOverARenewal() {
    Conversation conversation = conversation(0);
    save(conversation);
    Status foreign = failure(Code.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID");
    server.script("ListMemories", foreign);
    conversation.listMemories(r -> r.setPageToken("of ms_1"));
    assertEquals(List.of("ms_2", "ms_1"), credentials("ListMemories"));

    server.script("ListMemories", foreign, EXPIRED);
    var lost =
        assertThrows(
            MunimentException.class,
            () -> conversation.listMemories(r -> r.setPageToken("of ms_1")));
    assertEquals("PAGE_TOKEN_INVALID", lost.reasonName());
  }

  @Test
  void aStreamBeginsWithAFreshTokenAndIsNeverMadeAgain() {
    Conversation conversation = conversation(0);
    var passages = List.of(StorePassageRequest.newBuilder().setContent("p").build());
    conversation.importPassages(passages);
    server.script("ImportPassages", EXPIRED);
    assertThrows(MunimentException.class, () -> conversation.importPassages(passages));
    assertEquals(List.of("ms_2", "ms_2"), credentials("ImportPassages"));
  }

  @Test
  void closingClosesBothSessionsAndNothingIsRenewedAfterIt() {
    Conversation conversation = conversation(0);
    save(conversation);
    server.script("CloseSession", GONE, INTERNAL);

    assertThrows(MunimentException.class, conversation::close);
    assertEquals(List.of("s1", "s2"), closed());
    conversation.close();
    conversation.closeSession();
    assertEquals(List.of("s1", "s2", "s2"), closed());

    server.script("SaveMemory", EXPIRED);
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(1, server.calls("GetSession").size());
  }

  @Test
  void onlyTheLastTwoSessionsAreStillOpen() {
    server.script("OpenSession", opened(1, 0), opened(2, 0), opened(3, HOUR));
    Conversation conversation = host.conversation("ada", "chat-42");
    found(session(1, 0, Classification.CLASSIFICATION_PUBLIC));
    found(session(2, 0, Classification.CLASSIFICATION_PUBLIC));
    save(conversation);
    save(conversation);

    conversation.close();

    assertEquals(List.of("s2", "s3"), closed());
  }

  @Test
  void aRaiseIsOfTheSessionThatIsOpenNow() {
    Conversation conversation = conversation(0);
    Session raised = session(2, HOUR, Classification.CLASSIFICATION_CONFIDENTIAL);
    server.script("RaiseTaint", RaiseTaintResponse.newBuilder().setSession(raised).build());

    conversation.raiseTaint(Classification.CLASSIFICATION_CONFIDENTIAL, "read the payroll");

    assertEquals("s2", requests("RaiseTaint", RaiseTaintRequest.class).get(0).getSessionId());
    assertEquals(raised, conversation.opened().orElseThrow());
  }

  @Test
  void aResetGivesAnotherConversationAndTheOldOneIsOver() {
    Conversation old = conversation(0);
    Session reset = session(3, HOUR, Classification.CLASSIFICATION_PUBLIC);
    var answer = ResetSessionResponse.newBuilder().setToken("ms_3").setSession(reset).build();
    server.script("ResetSession", INTERNAL, answer);

    assertThrows(MunimentException.class, () -> old.reset("it fails"));
    Conversation anew = old.reset("the context was wiped");

    assertEquals("s2", requests("ResetSession", ResetSessionRequest.class).get(1).getSessionId());
    server.script("SaveMemory", EXPIRED, EXPIRED);
    assertEquals("CREDENTIAL_EXPIRED", failureOf(old));
    found(reset);
    server.script("OpenSession", opened(4, HOUR));
    save(anew);
    assertEquals(List.of("ms_2", "ms_3", "ms_4"), credentials("SaveMemory"));
  }

  @Test
  void aConversationWhoseResetFailedGoesOn() {
    Conversation conversation = conversation(HOUR);
    server.script("ResetSession", INTERNAL);
    assertThrows(MunimentException.class, () -> conversation.reset("it fails"));
    server.script("SaveMemory", EXPIRED);
    save(conversation);
  }

  @Test
  void generatedStubsAndOtherDeadlinesHaveTheTokenThatIsOpenNow() {
    Conversation conversation = conversation(0);
    var stub = muniment.v1.MemoryServiceGrpc.newBlockingStub(conversation.channel());
    stub.getMemory(muniment.v1.GetMemoryRequest.getDefaultInstance());
    conversation.withTimeout(Duration.ofMinutes(1)).getMemory(r -> r.setKey("tea"));
    assertEquals(List.of("ms_2", "ms_2"), credentials("GetMemory"));
    assertFalse(conversation.toString().contains("ms_2"));
  }
}
