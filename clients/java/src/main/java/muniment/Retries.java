package muniment;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How often a call is made at most, and how long to wait in between.
 *
 * <p>The pause doubles each time, less up to half by chance, so that clients do not come back all
 * at once. A server that names a time is given that time on top.
 *
 * @param attempts how often a call is made, the first time included: at least 1
 * @param pause the first pause
 * @param longestPause what doubling ends at
 */
public record Retries(int attempts, Duration pause, Duration longestPause) {
  /** Four attempts, 0.1 to 2 seconds apart. */
  public static final Retries DEFAULT =
      new Retries(4, Duration.ofMillis(100), Duration.ofSeconds(2));

  /** Every call is made once. */
  public static final Retries NONE = new Retries(1, Duration.ZERO, Duration.ZERO);

  /** Refuses less than one attempt, and pauses that are negative. */
  public Retries {
    if (attempts < 1 || pause.isNegative() || longestPause.isNegative()) {
      throw new IllegalArgumentException("attempts is at least 1, and pauses are not negative");
    }
  }

  /** The pause after an attempt; the first is number 1. */
  Duration pauseAfter(int attempt) {
    double doubled = Math.min(pause.toNanos() * Math.pow(2, attempt - 1), longestPause.toNanos());
    return Duration.ofNanos((long) (doubled * ThreadLocalRandom.current().nextDouble(0.5, 1)));
  }
}
