package muniment;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.grpc.ServerCredentials;
import io.grpc.TlsServerCredentials;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Certificates made by openssl, in a folder. */
record Certificates(Path folder) {
  /** Makes an authority, and returns its file. */
  Path authority(String name) throws IOException, InterruptedException {
    make(name, "-addext", "basicConstraints=critical,CA:TRUE");
    return folder.resolve(name + ".pem");
  }

  /** What a server needs whose certificate an authority has signed for a name. */
  ServerCredentials server(String name, String authority, String alternative)
      throws IOException, InterruptedException {
    String signed = "subjectAltName=" + alternative;
    make(name, "-CA", authority + ".pem", "-CAkey", authority + ".key", "-addext", signed);
    return TlsServerCredentials.create(
        folder.resolve(name + ".pem").toFile(), folder.resolve(name + ".key").toFile());
  }

  private void make(String name, String... options) throws IOException, InterruptedException {
    var command = new ArrayList<>(List.of("openssl", "req", "-x509", "-nodes", "-days", "2"));
    command.addAll(List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"));
    command.addAll(List.of("-subj", "/CN=" + name));
    command.addAll(List.of("-keyout", name + ".key", "-out", name + ".pem"));
    command.addAll(List.of(options));
    var openssl = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true);
    Process process = openssl.start();
    String said = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), said);
  }
}
