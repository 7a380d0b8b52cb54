package muniment;

import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.util.regex.Pattern;

/** Opens channels: where the server is, and who may listen on the way. */
final class Connection {
  /** What is not understood is not local. */
  private static final Pattern LOCAL =
      Pattern.compile(
          "unix:.+|(dns:///)?(localhost|127(\\.[0-9]{1,3}){3}|\\[::1])(:[0-9]+)?",
          Pattern.CASE_INSENSITIVE);

  private Connection() {}

  /** Up to four connections, each of which is made when it is first used. */
  static Pool open(String address, Options options) {
    return new Pool(() -> openOne(address, options));
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
