package muniment;

import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Opens channels: where the server is, and who may listen on the way. */
final class Connection {
  /** What is not understood is not local. */
  private static final Pattern LOCAL =
      Pattern.compile(
          "unix:.+|(dns:///)?(localhost|127(\\.[0-9]{1,3}){3}|\\[::1])(:[0-9]+)?",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern WEB_SCHEME =
      Pattern.compile("((?:https?|grpcs?)://).*", Pattern.CASE_INSENSITIVE);

  private static final Pattern PLACE =
      Pattern.compile("(?:dns:///)?(?:\\[[0-9A-Fa-f:]+]|[A-Za-z0-9.-]+)(?::(?<port>[0-9]+))?");

  private static final String FORM = "give HOST:PORT, such as 127.0.0.1:50051, or unix:PATH";

  private Connection() {}

  /** Up to four connections, each of which is made when it is first used. */
  static Pool open(String address, Options options) {
    check(address);
    return new Pool(address, () -> openOne(address, options));
  }

  /** Refuses an address that is none. Only what cannot be a credential is repeated. */
  private static void check(String address) {
    Matcher web = WEB_SCHEME.matcher(address);
    if (web.matches()) {
      throw new IllegalArgumentException(
          "an address has no scheme: leave out "
              + web.group(1)
              + ", and "
              + FORM
              + "; TLS is the option withTls");
    }
    Matcher place = PLACE.matcher(address);
    if (place.matches()) {
      checkPort(address, place.group("port"));
    } else if (!address.startsWith("unix:") && !address.contains("://")) {
      throw new IllegalArgumentException("the address is not understood: " + FORM);
    }
  }

  private static void checkPort(String address, String port) {
    if (port == null) {
      throw new IllegalArgumentException(address + " has no port: " + FORM);
    }
    if (!port.matches("0*[1-9][0-9]{0,4}") || Integer.parseInt(port) > 65_535) {
      throw new IllegalArgumentException("a port is a number from 1 to 65535, and not " + port);
    }
  }

  private static ManagedChannel openOne(String address, Options options) {
    ManagedChannelBuilder<?> builder = Grpc.newChannelBuilder(address, options.transport());
    // Others may be in the clear, or choose to be.
    if (!(options.transport() instanceof TlsChannelCredentials)) {
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

  /** Whether what is sent to an address stays on this machine. */
  static boolean isLocal(String address) {
    return LOCAL.matcher(address).matches();
  }
}
