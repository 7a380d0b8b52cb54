package muniment;

import io.grpc.InsecureChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/**
 * Where the server is, who calls and whom to trust, when the program does not say.
 *
 * @param ca the file of an authority; empty: none is named
 */
record Settings(String address, String credential, String ca) {
  static final String HOST_KEY = "MUNIMENT_HOST_KEY";
  static final String TOKEN = "MUNIMENT_TOKEN";
  private static final String ADDRESS = "MUNIMENT_ADDRESS";
  private static final String TLS_CA = "MUNIMENT_TLS_CA";
  private static final String CERTIFICATE = "-----BEGIN CERTIFICATE-----";

  /** Without the credential, which must get into no log. */
  @Override
  public String toString() {
    return "Settings[address=" + address + ", ca=" + ca + "]";
  }

  /** The address, and the credential that one variable holds, which are needed; an authority. */
  static Settings find(Map<String, String> environment, String credential) {
    return new Settings(
        required(environment, ADDRESS, "no server is named"),
        required(environment, credential, "there is no credential"),
        value(environment, TLS_CA));
  }

  /** Options with TLS and the authority, if one is named. What the program itself says stands. */
  Options over(Options options) {
    if (ca.isEmpty() || !(options.transport() instanceof InsecureChannelCredentials)) {
      return options;
    }
    try {
      var file = Path.of(ca);
      if (!Files.readString(file, StandardCharsets.ISO_8859_1).contains(CERTIFICATE)) {
        throw new IllegalStateException("the file of " + TLS_CA + " holds no certificate in PEM");
      }
      return options.withTls(file);
    } catch (IOException unreadable) {
      throw new UncheckedIOException(TLS_CA + " names no file to read", unreadable);
    }
  }

  private static String required(Map<String, String> environment, String name, String absent) {
    String value = value(environment, name);
    if (value.isEmpty()) {
      throw new IllegalStateException(absent + ": set " + name);
    }
    return value;
  }

  private static String value(Map<String, String> environment, String name) {
    return environment.getOrDefault(name, "").strip();
  }
}
