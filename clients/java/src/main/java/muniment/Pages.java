package muniment;

import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Stream;

/** Follows the pages of a list. */
public final class Pages {
  private Pages() {}

  /**
   * All pages: the first is fetched at once, each later one when it is asked for.
   *
   * <p>A page token is worth nothing after the taint was raised: the stream ends with {@code
   * ERROR_REASON_TAINT_CHANGED}, and one begins again.
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
}
