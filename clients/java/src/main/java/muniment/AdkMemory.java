package muniment;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.adk.events.Event;
import com.google.adk.memory.BaseMemoryService;
import com.google.adk.memory.MemoryEntry;
import com.google.adk.memory.SearchMemoryResponse;
import com.google.adk.sessions.Session;
import com.google.genai.types.Content;
import com.google.genai.types.Part;
import com.google.protobuf.Timestamp;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import muniment.v1.ImportPassagesResponse;
import muniment.v1.ListMemoriesResponse;
import muniment.v1.Passage;
import muniment.v1.StorePassageRequest;

/**
 * What the memory services for Google's ADK have in common. Calls run on RxJava's scheduler for
 * input and output.
 */
abstract class AdkMemory implements BaseMemoryService {
  private static final int MAX_RESULTS = 10;
  private static final int MAX_PAGE_SIZE = 250;
  private static final int MAX_QUERY_CHARS = 1024;
  private static final int MAX_AUTHOR_CHARS = 256;
  private static final int MAX_PASSAGE_BYTES = 256 * 1024;

  /** Half of a surrogate pair. */
  private static final Pattern HALF = Pattern.compile("\\p{Cs}");

  /** The key of the memory that records a deletion begins with it. */
  private static final String DELETED = ChatHistories.RESERVED + "adk-deleted/";

  /** The namespace of the ids of events, the same as in every language's adapter. */
  private static final UUID IDS = UUID.fromString("5f0c61a4-5b5c-4c9c-9d54-0d4a6c3f2b1e");

  /** Makes a call with the session of an application's user. */
  abstract <T> T with(Owner owner, Function<SessionClient, T> call);

  /**
   * Stores the events of an ADK session that have text and are not stored yet. If some have more
   * than 256 KiB of text, the others are stored, and it fails with an {@link
   * IllegalArgumentException}.
   */
  @Override
  public Completable addSessionToMemory(Session added) {
    return Completable.fromAction(() -> add(added)).subscribeOn(Schedulers.io());
  }

  /** The ten memories that match best. */
  @Override
  public Single<SearchMemoryResponse> searchMemory(String appName, String userId, String query) {
    var owner = new Owner(appName, userId);
    var wanted = first(MAX_QUERY_CHARS, storable(query).strip());
    return Single.fromCallable(
            () -> wanted.isEmpty() ? List.<MemoryEntry>of() : found(owner, wanted))
        .map(memories -> SearchMemoryResponse.builder().memories(memories).build())
        .subscribeOn(Schedulers.io());
  }

  private void add(Session added) {
    var owner = new Owner(added.appName(), added.userId());
    var passages =
        List.copyOf(added.events()).stream()
            .flatMap(event -> passage(owner, added.id(), event).stream())
            .toList();
    var fitting =
        passages.stream()
            .filter(each -> each.getContentBytes().size() <= MAX_PASSAGE_BYTES)
            .toList();
    if (!fitting.isEmpty()) {
      store(owner, fitting);
    }
    if (fitting.size() < passages.size()) {
      throw new IllegalArgumentException(
          "Events with more than 256 KiB of text were not stored: "
              + (passages.size() - fitting.size())
              + ". All others were");
    }
  }

  void store(Owner owner, List<StorePassageRequest> passages) {
    with(owner, opened -> imported(opened, passages));
  }

  /**
   * Passages have ids: if the taint is raised meanwhile, those that are stored already are not
   * stored again.
   */
  private static ImportPassagesResponse imported(
      SessionClient session, List<StorePassageRequest> passages) {
    return Pages.undisturbed(
        Pages.RAISES, () -> session.importAgain(withoutDeleted(session, passages)));
  }

  private static List<StorePassageRequest> withoutDeleted(
      SessionClient session, List<StorePassageRequest> passages) {
    Set<String> deleted =
        Pages.all(
                token ->
                    session.listMemories(
                        r ->
                            r.setKeyPrefix(DELETED).setPageSize(MAX_PAGE_SIZE).setPageToken(token)),
                ListMemoriesResponse::getNextPageToken,
                ListOption.RESTART_ON_TAINT_CHANGE)
            .stream()
            .flatMap(page -> page.getMemoriesList().stream())
            .map(memory -> memory.getKey().substring(DELETED.length()))
            .collect(Collectors.toSet());
    return passages.stream().filter(each -> !deleted.contains(each.getPassageId())).toList();
  }

  List<MemoryEntry> found(Owner owner, String query) {
    var found =
        with(
            owner,
            opened ->
                opened.searchPassages(
                    r -> r.setQuery(query).addTags(owner.tag()).setMaxResults(MAX_RESULTS)));
    return found.getResultsList().stream().map(result -> entry(result.getPassage())).toList();
  }

  /** The passage of an event, if it has text. */
  private static Optional<StorePassageRequest> passage(Owner owner, String thread, Event event) {
    var text = text(event.content());
    if (text.isEmpty()) {
      return Optional.empty();
    }
    var time = Instant.ofEpochMilli(event.timestamp());
    return Optional.of(
        StorePassageRequest.newBuilder()
            .setContent(text)
            .addTags(owner.tag())
            .setThread(thread)
            .setAuthor(first(MAX_AUTHOR_CHARS, orEmpty(event.author())))
            .setEventTime(
                Timestamp.newBuilder().setSeconds(time.getEpochSecond()).setNanos(time.getNano()))
            .setPassageId(owner.passageId(thread, orEmpty(event.id()), text))
            .build());
  }

  private static MemoryEntry entry(Passage passage) {
    var role = passage.getAuthor().equals("user") ? "user" : "model";
    var time = passage.getEventTime();
    return MemoryEntry.builder()
        .content(Content.builder().role(role).parts(Part.fromText(passage.getContent())).build())
        .author(passage.getAuthor())
        .timestamp(Instant.ofEpochSecond(time.getSeconds(), time.getNanos()))
        .build();
  }

  private static String text(Optional<Content> content) {
    return storable(
        content.flatMap(Content::parts).stream()
            .flatMap(List::stream)
            .filter(part -> !part.thought().orElse(false))
            .flatMap(part -> part.text().stream())
            .filter(text -> !text.isEmpty())
            .collect(Collectors.joining(" ")));
  }

  /**
   * A text in which U+FFFD replaces what cannot be stored: U+0000, and half of a surrogate pair. A
   * message that has one must not keep the rest of its session from being stored.
   */
  private static String storable(String text) {
    return text.replaceAll("[\\x00\\p{Cs}]", "\ufffd");
  }

  private static String orEmpty(String text) {
    return text == null ? "" : text;
  }

  /** At most so many characters of a text. */
  private static String first(int count, String text) {
    return text.codePointCount(0, text.length()) <= count
        ? text
        : text.substring(0, text.offsetByCodePoints(0, count));
  }

  /** A user of an application. Tags, ids and agents are the same in every language's adapter. */
  record Owner(String app, String user) {
    String tag() {
      return ChatHistories.RESERVED + "adk:" + digest();
    }

    String agent() {
      return "adk-" + digest();
    }

    /** A UUID of version 5. */
    String passageId(String thread, String event, String text) {
      var namespace = ByteBuffer.allocate(2 * Long.BYTES);
      namespace.putLong(IDS.getMostSignificantBits()).putLong(IDS.getLeastSignificantBits());
      var hash = hash("SHA-1", namespace.array(), joined(app, user, thread, event, text));
      var high = hash.getLong() & ~0xf000L | 0x5000L;
      var low = hash.getLong() & ~(0xc0L << 56) | 0x80L << 56;
      return new UUID(high, low).toString();
    }

    private String digest() {
      return HexFormat.of().formatHex(hash("SHA-256", joined(app, user)).array(), 0, 16);
    }

    /** One text for the names, different for others however they are split. */
    private static byte[] joined(String... names) {
      // As UTF-8 it would be a question mark, and two names would be one.
      if (Stream.of(names).anyMatch(name -> HALF.matcher(name).find())) {
        throw new IllegalArgumentException(
            "The names of applications, users, sessions and events must not have half of a"
                + " surrogate pair");
      }
      return Stream.of(names)
          .map(name -> name.getBytes(UTF_8).length + ":" + name)
          .collect(Collectors.joining())
          .getBytes(UTF_8);
    }

    private static ByteBuffer hash(String algorithm, byte[]... parts) {
      try {
        var digest = MessageDigest.getInstance(algorithm);
        Stream.of(parts).forEach(digest::update);
        return ByteBuffer.wrap(digest.digest());
      } catch (NoSuchAlgorithmException error) {
        throw new IllegalStateException("every Java has this algorithm", error);
      }
    }
  }
}
