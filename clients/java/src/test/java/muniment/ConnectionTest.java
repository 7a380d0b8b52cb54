package muniment;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.CallCredentials;
import io.grpc.ChannelCredentials;
import io.grpc.ChoiceChannelCredentials;
import io.grpc.CompositeChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a credential may go, and what options may say. */
class ConnectionTest {
  @ParameterizedTest
  @ValueSource(
      strings = {
        "localhost:1",
        "LOCALHOST",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]:1",
        "dns:///localhost:1",
        "unix:/run/m.sock",
        "unix:///run/m.sock"
      })
  void whatStaysOnThisMachineIsLocal(String address) {
    assertTrue(Connection.isLocal(address));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "muniment.example:1",
        "localhost.example:1",
        "127.0.0.1.example:1",
        "0.0.0.0:1",
        "[::2]:1",
        "dns://127.0.0.1/muniment.example:1",
        "passthrough:///127.0.0.1",
        ""
      })
  void whatMayCrossANetworkIsNot(String address) {
    assertFalse(Connection.isLocal(address));
    assertThrows(IllegalArgumentException.class, () -> HostClient.connect(address, "mk_host"));
  }

  @ParameterizedTest
  @CsvSource({
    "localhost, 'localhost has no port: give host:port, such as localhost:50051, or unix:/path'",
    "dns:///db.example, 'dns:///db.example has no port: give host:port, such as db.example:50051'",
    "[::1], '[::1] has no port: give host:port, such as [::1]:50051'",
    "http://localhost:1, 'an address has no scheme such as http://: give host:port alone'",
    "grpc://localhost:1, 'an address has no scheme such as grpc://: give host:port alone'",
    "localhost:80000, 'a port is a number from 1 to 65535, and not 80000'",
    "localhost:0, 'a port is a number from 1 to 65535, and not 0'",
    "localhost:99999999999, 'a port is a number from 1 to 65535, and not 99999999999'",
    "user@localhost:1, an address is host:port or unix:/path",
    "localhost:1/path, an address is host:port or unix:/path",
    "'', an address is host:port or unix:/path"
  })
  void anAddressThatIsNoneIsRefusedWithWhatIsWrong(String address, String start) {
    for (Options options : List.of(Options.DEFAULT, Options.DEFAULT.withTls())) {
      var refusal =
          assertThrows(
              IllegalArgumentException.class,
              () -> SessionClient.connect(address, "ms_token", options));
      assertTrue(refusal.getMessage().startsWith(start), refusal.getMessage());
    }
  }

  @Test
  void theSchemeOfTlsIsAnOption() {
    var refusal =
        assertThrows(
            IllegalArgumentException.class,
            () -> SessionClient.connect("https://ada:s3cret@localhost:1/v1", "ms_token"));
    assertEquals(
        "an address has no scheme such as https://: give host:port alone, such as localhost:1,"
            + " and turn TLS on by Options.withTls or MUNIMENT_TLS_CA",
        refusal.getMessage());
  }

  @Test
  void whatIsMissingInTheEnvironmentIsNamed() {
    var both = Map.of("MUNIMENT_ADDRESS", "localhost:1", "MUNIMENT_HOST_KEY", "mk_host");
    assertEquals("mk_host", Settings.find(both, Settings.HOST_KEY).credential());
    var noToken =
        assertThrows(IllegalStateException.class, () -> Settings.find(both, Settings.TOKEN));
    assertEquals("there is no credential: set MUNIMENT_TOKEN", noToken.getMessage());
    var none =
        assertThrows(IllegalStateException.class, () -> Settings.find(Map.of(), Settings.TOKEN));
    assertEquals("no server is named: set MUNIMENT_ADDRESS", none.getMessage());
  }

  @Test
  void eachClientTakesItsOwnOfTwoCredentials() {
    var both =
        Map.of(
            "MUNIMENT_ADDRESS", "localhost:1",
            "MUNIMENT_HOST_KEY", "mk_host",
            "MUNIMENT_TOKEN", "ms_token");
    assertEquals("mk_host", Settings.find(both, Settings.HOST_KEY).credential());
    assertEquals("ms_token", Settings.find(both, Settings.TOKEN).credential());
  }

  @Test
  void theTextOfSettingsHasNoCredential() {
    assertEquals(
        "Settings[address=localhost:1, ca=ca.pem]",
        new Settings("localhost:1", "mk_host", "ca.pem").toString());
  }

  @Test
  void whatIsNotCertainToBeTlsIsInTheClear() {
    var insecure = InsecureChannelCredentials.create();
    var credentials =
        List.of(
            ChoiceChannelCredentials.create(insecure),
            ChoiceChannelCredentials.create(TlsChannelCredentials.create(), insecure),
            CompositeChannelCredentials.create(insecure, new NoCallCredentials()));
    for (ChannelCredentials each : credentials) {
      var options = Options.DEFAULT.withTls(each);
      assertThrows(
          IllegalArgumentException.class,
          () -> HostClient.connect("muniment.example:443", "mk_host", options));
    }
  }

  private static final class NoCallCredentials extends CallCredentials {
    @Override
    public void applyRequestMetadata(RequestInfo call, Executor executor, MetadataApplier applier) {
      applier.apply(new Metadata());
    }
  }

  @Test
  void theEnvironmentMayNameAnAuthority(@TempDir Path folder) throws IOException {
    String authority = "-----BEGIN CERTIFICATE-----";
    Path ca = Files.writeString(folder.resolve("ca.pem"), authority);

    var named = new Settings("muniment.example:443", "mk_host", ca.toString());

    var transport = (TlsChannelCredentials) named.over(Options.DEFAULT).transport();
    assertEquals(authority, new String(transport.getRootCertificates(), UTF_8));
    var own = Options.DEFAULT.withTls();
    assertEquals(own, named.over(own));
    var missing = new Settings("localhost:1", "mk_host", folder.resolve("none").toString());
    assertThrows(UncheckedIOException.class, () -> missing.over(Options.DEFAULT));
    assertEquals(Options.DEFAULT, new Settings("localhost:1", "mk_host", "").over(Options.DEFAULT));
  }

  @Test
  void overTlsAnyAddressWillDo() {
    HostClient.connect("muniment.example:443", "mk_host", Options.DEFAULT.withTls()).close();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, 86_401})
  void aTimeoutIsMoreThanZeroAndAtMostADay(long seconds) {
    assertThrows(
        IllegalArgumentException.class,
        () -> Options.DEFAULT.withTimeout(Duration.ofSeconds(seconds)));
  }

  @Test
  void theDefaultIsTenSeconds() {
    assertEquals(Duration.ofSeconds(10), Options.DEFAULT.timeout());
  }

  @Test
  void pausesDoubleUpToTheLongest() {
    for (int attempt = 1; attempt < 100; attempt++) {
      double longest = Math.min(100 * Math.pow(2, attempt - 1), 2000);
      double pause = Repetition.pauseAfter(attempt).toNanos() / 1e6;
      assertEquals(longest * 0.75, pause, longest * 0.25);
    }
  }
}
