package muniment;

import java.util.List;
import java.util.Optional;
import muniment.v1.ErrorReason;
import muniment.v1.ListMemoriesResponse;

/**
 * Lists of messages, as the chat memories of frameworks replace them: each is one memory, with the
 * messages as JSON. Each framework has a prefix of its own, because the other cannot read its JSON.
 */
final class ChatHistories {
  private static final int MAX_PAGE_SIZE = 250;

  private final SessionClient session;
  private final String prefix;

  ChatHistories(SessionClient session, String prefix) {
    this.session = session;
    this.prefix = prefix;
  }

  /** The messages of a conversation, or nothing if there are none. */
  Optional<String> read(String conversation) {
    try {
      var memory = session.getMemory(r -> r.setKey(prefix + conversation)).getMemory();
      return Optional.of(memory.getContent());
    } catch (MunimentException e) {
      if (e.reason() == ErrorReason.ERROR_REASON_MEMORY_NOT_FOUND) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /** Replaces the messages of a conversation, at the session's taint. */
  void replace(String conversation, String messages) {
    session.saveMemory(r -> r.setKey(prefix + conversation).setContent(messages));
  }

  /** Deletes the messages of a conversation, if there are any. */
  void delete(String conversation) {
    try {
      session.deleteMemory(r -> r.setKey(prefix + conversation));
    } catch (MunimentException e) {
      if (e.reason() == ErrorReason.ERROR_REASON_WRITE_LEVEL_MISMATCH) {
        throw new IllegalStateException(
            "The conversation was written at a lower classification, so it cannot be deleted", e);
      }
      if (e.reason() != ErrorReason.ERROR_REASON_MEMORY_NOT_FOUND) {
        throw e;
      }
    }
  }

  /** The conversations that have messages, by name. */
  List<String> conversations() {
    return Pages.all(
            token ->
                session.listMemories(
                    r -> r.setKeyPrefix(prefix).setPageSize(MAX_PAGE_SIZE).setPageToken(token)),
            ListMemoriesResponse::getNextPageToken,
            ListOption.RESTART_ON_TAINT_CHANGE)
        .stream()
        .flatMap(page -> page.getMemoriesList().stream())
        .map(memory -> memory.getKey().substring(prefix.length()))
        .toList();
  }
}
