package muniment;

import java.util.List;
import org.springframework.ai.chat.memory.ChatMemoryRepository;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.chat.messages.MessageType;
import org.springframework.ai.chat.messages.SystemMessage;
import org.springframework.ai.chat.messages.ToolResponseMessage;
import org.springframework.ai.chat.messages.UserMessage;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/**
 * A chat memory repository for Spring AI, whose package a program brings: the conversations of one
 * session's agent, up to the session's taint.
 *
 * <p>The messages of a conversation are one memory, {@code muniment:spring-ai/} and its id, with up
 * to 128 KiB of JSON: the texts, tool calls and tool responses, without metadata and media. Those
 * above the taint do not exist. A save replaces them at the taint, and leaves a lower version as it
 * is. A conversation that was written at a lower level only cannot be deleted: {@link
 * IllegalStateException}; where a deletion uncovers a lower version, that is read from then on. It
 * does not close the session.
 */
public final class MunimentChatMemoryRepository implements ChatMemoryRepository {
  private static final JsonMapper JSON = new JsonMapper();
  private static final TypeReference<List<Stored>> ALL = new TypeReference<>() {};

  private final ChatHistories histories;

  /** A repository for a session. */
  public MunimentChatMemoryRepository(SessionClient session) {
    histories = new ChatHistories(session, "spring-ai");
  }

  /** A message as it is stored. */
  private record Stored(
      MessageType type,
      String text,
      List<AssistantMessage.ToolCall> toolCalls,
      List<ToolResponseMessage.ToolResponse> responses) {
    static Stored of(Message message) {
      return new Stored(
          message.getMessageType(),
          message.getText(),
          message instanceof AssistantMessage assistant ? assistant.getToolCalls() : List.of(),
          message instanceof ToolResponseMessage tool ? tool.getResponses() : List.of());
    }

    Message message() {
      return switch (type) {
        case USER -> new UserMessage(text);
        case SYSTEM -> new SystemMessage(text);
        case ASSISTANT -> AssistantMessage.builder().content(text).toolCalls(toolCalls).build();
        case TOOL -> ToolResponseMessage.builder().responses(responses).build();
      };
    }
  }

  @Override
  public List<String> findConversationIds() {
    return histories.conversations();
  }

  @Override
  public List<Message> findByConversationId(String conversationId) {
    return histories.read(conversationId, MunimentChatMemoryRepository::parsed);
  }

  private static List<Message> parsed(String text) {
    return JSON.readValue(text, ALL).stream().map(Stored::message).toList();
  }

  @Override
  public void saveAll(String conversationId, List<Message> messages) {
    var stored = messages.stream().map(Stored::of).toList();
    histories.replace(conversationId, JSON.writeValueAsString(stored));
  }

  @Override
  public void deleteByConversationId(String conversationId) {
    histories.delete(conversationId);
  }
}
