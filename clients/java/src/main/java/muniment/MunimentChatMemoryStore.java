package muniment;

import dev.langchain4j.data.message.ChatMessage;
import dev.langchain4j.data.message.ChatMessageDeserializer;
import dev.langchain4j.data.message.ChatMessageSerializer;
import dev.langchain4j.store.memory.chat.ChatMemoryStore;
import java.util.List;

/**
 * A chat memory store for LangChain4j, whose package a program brings: the conversations of one
 * session's agent, up to the session's taint.
 *
 * <p>The messages of a conversation are one memory, {@code muniment:langchain4j/} and its id as a
 * string, with up to 128 KiB of JSON: 1 and "1" are one id. Those above the taint do not exist. An
 * update replaces them at the taint, and leaves a lower version as it is. A conversation that was
 * written at a lower level only cannot be deleted: {@link IllegalStateException}; where a deletion
 * uncovers a lower version, that is read from then on. It does not close the session.
 */
public final class MunimentChatMemoryStore implements ChatMemoryStore {
  private final ChatHistories histories;

  /** A store for a session. */
  public MunimentChatMemoryStore(SessionClient session) {
    histories = new ChatHistories(session, "langchain4j");
  }

  @Override
  public List<ChatMessage> getMessages(Object memoryId) {
    return histories.read(memoryId.toString(), ChatMessageDeserializer::messagesFromJson);
  }

  @Override
  public void updateMessages(Object memoryId, List<ChatMessage> messages) {
    histories.replace(memoryId.toString(), ChatMessageSerializer.messagesToJson(messages));
  }

  @Override
  public void deleteMessages(Object memoryId) {
    histories.delete(memoryId.toString());
  }
}
