package muniment;

import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import muniment.v1.ErrorReason;

/** Follows the pages of a list. */
public final class Pages {
  /** How often a conversation can be raised: thrice to a higher level, once to UNTRUSTED. */
  static final int RAISES = 4;

  private Pages() {}

  /**
   * All pages: the first is fetched at once, each later one when it is asked for.
   *
   * <p>A page token is valid at one taint only. If a host raises the taint between two pages, the
   * stream fails with {@code ERROR_REASON_TAINT_CHANGED}. The pages so far belong to the old taint;
   * begin again, or use {@link #all}.
   *
   * @param fetch gets the page of a token; of the empty token, the first
   * @param nextPageToken says which token a page leads to; the empty one ends the stream
   */
  public static <P> Stream<P> of(Function<String, P> fetch, Function<P, String> nextPageToken) {
    return Stream.iterate(
        fetch.apply(""),
        Objects::nonNull,
        page -> {
          String token = nextPageToken.apply(page);
          return token.isEmpty() ? null : fetch.apply(token);
        });
  }

  /**
   * The pages of a whole list, all read at one taint.
   *
   * @param fetch gets the page of a token; of the empty token, the first
   * @param nextPageToken says which token a page leads to; the empty one ends the list
   * @param options whether the list is read again when the taint is raised between two pages
   */
  public static <P> List<P> all(
      Function<String, P> fetch, Function<P, String> nextPageToken, ListOption... options) {
    boolean restart = List.of(options).contains(ListOption.RESTART_ON_TAINT_CHANGE);
    return undisturbed(restart ? RAISES : 0, () -> of(fetch, nextPageToken).toList());
  }

  /** What a call returns, begun again at most so many times if the taint is raised meanwhile. */
  static <T> T undisturbed(int mostRestarts, Supplier<T> call) {
    for (int restarts = mostRestarts; ; restarts--) {
      try {
        return call.get();
      } catch (MunimentException error) {
        if (restarts == 0 || error.reason() != ErrorReason.ERROR_REASON_TAINT_CHANGED) {
          throw error;
        }
      }
    }
  }
}
