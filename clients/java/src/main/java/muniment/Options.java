package muniment;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * How a client connects, and how it calls.
 *
 * @param timeout the deadline of every call, spanning all its attempts: more than zero, at most a
 *     day
 * @param retries whether calls are made again until their deadline, where that is safe
 * @param transport what protects the connection; with anything but {@link TlsChannelCredentials},
 *     only a loopback address or a unix socket will do
 */
public record Options(Duration timeout, boolean retries, ChannelCredentials transport) {
  // Before the default, which is checked against it.
  private static final Duration LONGEST_TIMEOUT = Duration.ofDays(1);

  /** 10 seconds, with retries, no TLS. */
  public static final Options DEFAULT =
      new Options(Duration.ofSeconds(10), true, InsecureChannelCredentials.create());

  /** Refuses a timeout that is none. */
  public Options {
    if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(LONGEST_TIMEOUT) > 0) {
      throw new IllegalArgumentException("a timeout is more than zero and at most a day");
    }
    Objects.requireNonNull(transport);
  }

  /** The same with another deadline for every call. */
  public Options withTimeout(Duration timeout) {
    return new Options(timeout, retries, transport);
  }

  /** The same with every call made once. */
  public Options withoutRetries() {
    return new Options(timeout, false, transport);
  }

  /** The same over TLS, trusting the authorities that the Java runtime trusts. */
  public Options withTls() {
    return withTls(TlsChannelCredentials.create());
  }

  /**
   * The same over TLS, trusting the authorities of a PEM file alone. The file is read now.
   *
   * @throws IOException if it cannot be read
   */
  public Options withTls(Path ca) throws IOException {
    return withTls(TlsChannelCredentials.newBuilder().trustManager(ca.toFile()).build());
  }

  /**
   * The same over whatever {@link TlsChannelCredentials} can be made to be, such as mutual TLS.
   *
   * @param tls what their builder builds; others are held to be no protection
   */
  public Options withTls(ChannelCredentials tls) {
    return new Options(timeout, retries, tls);
  }
}
