package muniment;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.security.NoSuchAlgorithmException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;

/** Finds out whether a server speaks TLS, by sending the first message of a handshake. */
final class Handshake {
  private static final int MILLISECONDS = 2000;

  /** Types of TLS records (RFC 8446, section 5.1). A server without TLS sends neither first. */
  private static final int ALERT = 21;

  private static final int HANDSHAKE = 22;

  private Handshake() {}

  /** Whether the server answers in TLS. Nothing else is sent to it. */
  static boolean isAnswered(String address) {
    return Connection.socketAddress(address).filter(Handshake::isAnswered).isPresent();
  }

  private static boolean isAnswered(InetSocketAddress server) {
    try (Socket socket = new Socket()) {
      socket.connect(server, MILLISECONDS);
      socket.setSoTimeout(MILLISECONDS);
      ByteBuffer hello = hello();
      socket.getOutputStream().write(hello.array(), 0, hello.position());
      int first = socket.getInputStream().read();
      return first == HANDSHAKE || first == ALERT;
    } catch (IOException | NoSuchAlgorithmException failed) {
      return false;
    }
  }

  private static ByteBuffer hello() throws IOException, NoSuchAlgorithmException {
    SSLEngine engine = SSLContext.getDefault().createSSLEngine();
    engine.setUseClientMode(true);
    ByteBuffer hello = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
    engine.wrap(ByteBuffer.allocate(0), hello);
    return hello;
  }
}
