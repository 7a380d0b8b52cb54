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
import java.util.List;
import muniment.v1.Classification;
import muniment.v1.OpenSessionResponse;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.RaiseTaintResponse;
import muniment.v1.RenewSessionRequest;
import muniment.v1.RenewSessionResponse;
import muniment.v1.ResetSessionRequest;
import muniment.v1.ResetSessionResponse;
import muniment.v1.Session;
import muniment.v1.StorePassageRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Sessions that their host renews. */
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

  private static Message renewed(int number, Classification taint) {
    return RenewSessionResponse.newBuilder().setSession(session(number, HOUR, taint)).build();
  }

  /** A conversation whose session s1 has so many seconds. */
  private Conversation conversation(int seconds) {
    server.script("OpenSession", opened(1, seconds));
    return host.conversation("ada", "chat-42");
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

  private List<String> renewed() {
    return requests("RenewSession", RenewSessionRequest.class).stream()
        .map(RenewSessionRequest::getSessionId)
        .toList();
  }

  @Test
  void aSessionWithLittleTimeIsRenewed() {
    save(conversation(4));
    assertEquals(List.of(), renewed());
    Conversation conversation = conversation(0);
    server.script("RenewSession", renewed(1, Classification.CLASSIFICATION_INTERNAL));

    save(conversation);

    assertEquals(List.of("s1"), renewed());
    assertEquals(List.of("mk_host"), credentials("RenewSession"));
    assertEquals(List.of("ms_1", "ms_1"), credentials("SaveMemory"));
    assertEquals("ms_1", conversation.token());
    assertEquals("s1", conversation.sessionId());
    assertEquals(
        Classification.CLASSIFICATION_INTERNAL, conversation.opened().orElseThrow().getTaint());
  }

  @Test
  void aSessionIsRenewedForTheTimeForWhichItWasOpened() {
    Conversation conversation = conversation(90);
    server.script("SaveMemory", EXPIRED);
    save(conversation);

    var request = requests("RenewSession", RenewSessionRequest.class).get(0);
    assertEquals(
        com.google.protobuf.Duration.newBuilder().setSeconds(90).build(), request.getTtl());
  }

  @Test
  void aSessionThatCannotBeRenewedInTimeGoesOnAndIsRenewedLater() throws InterruptedException {
    Conversation conversation = conversation(1);
    Thread.sleep(750);
    server.script("RenewSession", INTERNAL, renewed(1, Classification.CLASSIFICATION_PUBLIC));

    save(conversation);
    assertEquals(1, renewed().size());
    Thread.sleep(60);
    save(conversation);
    save(conversation);

    assertEquals(2, renewed().size());
    assertEquals(3, server.calls("SaveMemory").size());
  }

  @Test
  void aCallWhoseTokenHasExpiredIsMadeAgainOnceWhateverItIs() {
    Conversation conversation = conversation(HOUR);
    server.script("DeleteMemory", EXPIRED);
    conversation.deleteMemory(r -> r.setKey("tea"));
    assertEquals(List.of("ms_1", "ms_1"), credentials("DeleteMemory"));

    server.script("SaveMemory", EXPIRED, EXPIRED);
    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(2, server.calls("SaveMemory").size());
  }

  @Test
  void aSessionThatSomebodyHasEndedIsNotRenewed() {
    Conversation conversation = conversation(HOUR);
    server.script("SaveMemory", EXPIRED);
    server.script("RenewSession", GONE);

    assertEquals("CREDENTIAL_EXPIRED", failureOf(conversation));
    assertEquals(1, server.calls("SaveMemory").size());
  }

  @Test
  void onlyTheSessionOfAConversationIsRenewedAndOnlyIfItHasExpired() {
    Conversation conversation = conversation(HOUR);
    server.script("SaveMemory", INVALID, EXPIRED);

    assertEquals("CREDENTIAL_INVALID", failureOf(conversation));
    assertEquals("CREDENTIAL_EXPIRED", failureOf(host.session("ms_other")));
    assertEquals(List.of(), renewed());
  }

  @Test
  void aRenewalThatFindsNoServerIsTriedAgain() {
    Conversation conversation = conversation(HOUR);
    server.script("DeleteMemory", EXPIRED);
    server.script("RenewSession", unavailable(), renewed(1, Classification.CLASSIFICATION_PUBLIC));

    conversation.deleteMemory(r -> r.setKey("tea"));

    assertEquals(2, renewed().size());
    assertEquals(2, server.calls("DeleteMemory").size());
  }

  @Test
  void aStreamBeginsWithAFreshTokenAndIsNeverMadeAgain() {
    Conversation conversation = conversation(0);
    var passages = List.of(StorePassageRequest.newBuilder().setContent("p").build());
    server.script("ImportPassages", EXPIRED);
    assertThrows(MunimentException.class, () -> conversation.importPassages(passages));
    assertEquals(List.of("s1"), renewed());
    assertEquals(List.of("ms_1"), credentials("ImportPassages"));
  }

  @Test
  void closingClosesTheSessionUnlessItHasEnded() {
    Conversation conversation = conversation(HOUR);
    server.script("CloseSession", INTERNAL, INVALID);

    assertThrows(MunimentException.class, conversation::close);
    conversation.close();
    conversation.closeSession();
    assertEquals(List.of("ms_1", "ms_1", "ms_1"), credentials("CloseSession"));
  }

  @Test
  void aRaiseIsOfASessionThatIsOpen() {
    Conversation conversation = conversation(0);
    Session raised = session(1, HOUR, Classification.CLASSIFICATION_CONFIDENTIAL);
    server.script("RenewSession", renewed(1, Classification.CLASSIFICATION_PUBLIC));
    server.script("RaiseTaint", RaiseTaintResponse.newBuilder().setSession(raised).build());

    conversation.raiseTaint(Classification.CLASSIFICATION_CONFIDENTIAL, "read the payroll");

    assertEquals(List.of("s1"), renewed());
    assertEquals("s1", requests("RaiseTaint", RaiseTaintRequest.class).get(0).getSessionId());
    assertEquals(raised, conversation.opened().orElseThrow());
  }

  @Test
  void aResetGivesAnotherConversation() {
    Conversation old = conversation(HOUR);
    Session reset = session(2, HOUR, Classification.CLASSIFICATION_PUBLIC);
    var answer = ResetSessionResponse.newBuilder().setToken("ms_2").setSession(reset).build();
    server.script("ResetSession", INTERNAL, answer);

    assertThrows(MunimentException.class, () -> old.reset("it fails"));
    Conversation anew = old.reset("the context was wiped");

    assertEquals("s1", requests("ResetSession", ResetSessionRequest.class).get(1).getSessionId());
    server.script("SaveMemory", EXPIRED);
    save(anew);
    assertEquals(List.of("s2"), renewed());
    assertEquals(List.of("ms_2", "ms_2"), credentials("SaveMemory"));
  }

  @Test
  void generatedStubsAndOtherDeadlinesRenewToo() {
    Conversation conversation = conversation(0);
    var stub = muniment.v1.MemoryServiceGrpc.newBlockingStub(conversation.channel());
    stub.getMemory(muniment.v1.GetMemoryRequest.getDefaultInstance());
    conversation.withTimeout(Duration.ofMinutes(1)).getMemory(r -> r.setKey("tea"));
    assertEquals(2, renewed().size());
    assertEquals(List.of("ms_1", "ms_1"), credentials("GetMemory"));
    assertFalse(conversation.toString().contains("ms_1"));
  }
}
