package muniment;

import java.text.Normalizer;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;
import muniment.v1.ErrorReason;

/**
 * Lists of messages, as the chat memories of frameworks replace them: each is one memory, with the
 * messages as JSON. Each framework has a prefix of its own, because the other cannot read its JSON,
 * and all begin with {@link #RESERVED}, so that no model can write messages.
 */
final class ChatHistories {
  /**
   * Begins the keys and tags by which adapters find their items. No tool lets a model write an item
   * with such a name.
   */
  static final String RESERVED = "muniment:";

  private static final int MAX_PAGE_SIZE = 250;

  /** Half of a surrogate pair, in whose place protobuf would send a question mark. */
  private static final Pattern HALF = Pattern.compile("\\p{Cs}");

  private final SessionClient session;
  private final String prefix;

  ChatHistories(SessionClient session, String framework) {
    this.session = Objects.requireNonNull(session, "session");
    this.prefix = RESERVED + framework + "/";
  }

  /** The messages of a conversation, none if it does not exist. */
  <M> List<M> read(String conversation, Function<String, List<M>> parse) {
    var stored = stored(conversation);
    try {
      return stored.map(parse).orElseGet(List::of);
    } catch (RuntimeException e) {
      // Without its cause, because a parser's errors quote what it reads.
      throw new IllegalStateException(
          "The messages of the conversation cannot be read: replace or delete them");
    }
  }

  private Optional<String> stored(String conversation) {
    var key = key(conversation);
    try {
      var memory = session.getMemory(r -> r.setKey(key)).getMemory();
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
    var key = key(conversation);
    var escaped =
        HALF.matcher(messages)
            .replaceAll(half -> String.format("\\\\u%04x", (int) half.group().charAt(0)));
    session.saveMemory(r -> r.setKey(key).setContent(escaped));
  }

  /** Deletes the messages of a conversation, if there are any. */
  void delete(String conversation) {
    var key = key(conversation);
    try {
      session.deleteMemory(r -> r.setKey(key));
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
            this::namesOnPage, NamesOnPage::nextPageToken, ListOption.RESTART_ON_TAINT_CHANGE)
        .stream()
        .flatMap(page -> page.names().stream())
        .toList();
  }

  /** A page without its messages, of which all pages together may have more than fits in memory. */
  private record NamesOnPage(List<String> names, String nextPageToken) {}

  private NamesOnPage namesOnPage(String token) {
    var page =
        session.listMemories(
            r -> r.setKeyPrefix(prefix).setPageSize(MAX_PAGE_SIZE).setPageToken(token));
    var names =
        page.getMemoriesList().stream()
            .map(memory -> memory.getKey().substring(prefix.length()))
            .toList();
    return new NamesOnPage(names, page.getNextPageToken());
  }

  /** The key of a conversation. An id whose key would also be that of another is refused. */
  private String key(String conversation) {
    if (conversation == null || conversation.isBlank()) {
      throw new IllegalArgumentException("The id of a conversation must not be empty");
    }
    var key = prefix + conversation;
    if (HALF.matcher(key).find() || !Normalizer.isNormalized(key, Normalizer.Form.NFC)) {
      throw new IllegalArgumentException(
          "The id of a conversation must be in Unicode's Normalization Form C, without half of a"
              + " surrogate pair");
    }
    return key;
  }
}
