package muniment;

import static muniment.Failures.failure;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.protobuf.Message;
import io.grpc.Status.Code;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import muniment.v1.ListMemoriesRequest;
import muniment.v1.ListMemoriesResponse;
import muniment.v1.Memory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** How the list of conversations is read: {@link ChatMemories} has the rest. */
class ChatHistoriesTest {
  private FakeServer server;
  private SessionClient session;

  @BeforeEach
  void start() throws IOException {
    server = new FakeServer();
    session = SessionClient.connect(server.address(), "ms_session");
  }

  @AfterEach
  void stop() {
    session.close();
    server.close();
  }

  private static Message page(String next, String... keys) {
    var memories = Stream.of(keys).map(key -> Memory.newBuilder().setKey(key).build()).toList();
    return ListMemoriesResponse.newBuilder()
        .setNextPageToken(next)
        .addAllMemories(memories)
        .build();
  }

  private List<ListMemoriesRequest> asked() {
    return server.calls("ListMemories").stream()
        .map(call -> (ListMemoriesRequest) call.requests().get(0))
        .toList();
  }

  @Test
  void conversationsOfAllPagesComeInOrder() {
    server.script(
        "ListMemories",
        page("second", "muniment:spring-ai/a", "muniment:spring-ai/b"),
        page("third"),
        page("", "muniment:spring-ai/spring-ai/c"));

    var found = new MunimentChatMemoryRepository(session).findConversationIds();

    assertEquals(List.of("a", "b", "spring-ai/c"), found);
    assertEquals(
        List.of("", "second", "third"),
        asked().stream().map(ListMemoriesRequest::getPageToken).toList());
    assertEquals(
        List.of("muniment:spring-ai/"),
        asked().stream().map(ListMemoriesRequest::getKeyPrefix).distinct().toList());
  }

  @Test
  void whatWasReadBeforeARaiseIsForgotten() {
    server.script(
        "ListMemories",
        page("second", "muniment:spring-ai/a"),
        failure(Code.ABORTED, "TAINT_CHANGED"),
        page("second", "muniment:spring-ai/a"),
        page("", "muniment:spring-ai/b"));

    var found = new MunimentChatMemoryRepository(session).findConversationIds();

    assertEquals(List.of("a", "b"), found);
  }
}
