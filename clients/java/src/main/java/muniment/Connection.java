package muniment;

import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.net.InetSocketAddress;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Opens channels: where the server is, and who may listen on the way. */
final class Connection {
  /** What is not understood is not local. */
  private static final Pattern LOCAL =
      Pattern.compile(
          "unix:.+|(dns:///)?(localhost|127(\\.[0-9]{1,3}){3}|\\[::1])(:[0-9]+)?",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern URL =
      Pattern.compile(
          "(?<scheme>(?:https?|grpcs?|tcp)://)(?:[^/@]*@)?(?<rest>[^/?#]*).*",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern PLACE =
      Pattern.compile("(?:dns:///)?(?<host>\\[[0-9A-Fa-f:]+]|[A-Za-z0-9.-]+)(?::(?<port>[0-9]+))?");

  /** What to do if a server expects TLS: the end of a message. */
  static final String TURN_ON = "turn TLS on by Options.withTls or MUNIMENT_TLS_CA";

  /**
   * A connection that has fallen silent during a call is asked after this time whether anyone is
   * there, and given up after as long again without an answer.
   */
  private static final int SILENCE_SECONDS = 10;

  private Connection() {}

  /** Up to four connections, each of which is made when it is first used. */
  static Pool open(String address, Options options) {
    check(address);
    return new Pool(
        new Pool.Target(address, isEncrypted(options)), () -> openOne(address, options));
  }

  /** Refuses a malformed address. The message repeats only parts that cannot be a credential. */
  private static void check(String address) {
    Matcher url = URL.matcher(address);
    if (url.matches()) {
      throw new IllegalArgumentException(hasScheme(url.group("scheme"), url.group("rest")));
    }
    Matcher place = PLACE.matcher(address);
    if (place.matches()) {
      checkPort(address, place.group("host"), place.group("port"));
    } else if (!address.startsWith("unix:") && !address.contains("://")) {
      throw new IllegalArgumentException("an address is host:port or unix:/path");
    }
  }

  /** The host and port of an address. Empty for a unix socket. */
  static Optional<InetSocketAddress> socketAddress(String address) {
    Matcher place = PLACE.matcher(address);
    return place.matches()
        ? Optional.of(
            new InetSocketAddress(place.group("host"), Integer.parseInt(place.group("port"))))
        : Optional.empty();
  }

  private static String hasScheme(String scheme, String rest) {
    boolean encrypted = scheme.toLowerCase(Locale.ROOT).endsWith("s://");
    return "an address has no scheme such as %s: give host:port alone, such as %s%s"
        .formatted(scheme, rest, encrypted ? ", and " + TURN_ON : "");
  }

  private static void checkPort(String address, String host, String port) {
    if (port == null) {
      throw new IllegalArgumentException(
          "%s has no port: give host:port, such as %s:50051, or unix:/path"
              .formatted(address, host));
    }
    if (!port.matches("0*[1-9][0-9]{0,4}") || Integer.parseInt(port) > 65_535) {
      throw new IllegalArgumentException("a port is a number from 1 to 65535, and not " + port);
    }
  }

  private static ManagedChannel openOne(String address, Options options) {
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilder(address, options.transport())
            .keepAliveTime(SILENCE_SECONDS, TimeUnit.SECONDS)
            .keepAliveTimeout(SILENCE_SECONDS, TimeUnit.SECONDS);
    // Others may be in the clear, or choose to be.
    if (!isEncrypted(options)) {
      if (!isLocal(address)) {
        throw new IllegalArgumentException(
            "without TLS only a loopback address or a unix socket will do:"
                + " the credential would cross a network in the clear");
      }
      // A proxy would get the credential in the clear, even on the way to loopback.
      builder.proxyDetector(target -> null);
    }
    return builder.build();
  }

  private static boolean isEncrypted(Options options) {
    return options.transport() instanceof TlsChannelCredentials;
  }

  /** Whether what is sent to an address stays on this machine. */
  static boolean isLocal(String address) {
    return LOCAL.matcher(address).matches();
  }
}
