package muniment;

import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;

/** Observes whether anything of a call was sent. If not, the server cannot have begun it. */
final class Departure extends ClientStreamTracer.Factory {
  private volatile boolean sent;

  /** Whether the beginning of the call went out over a connection, in any attempt. */
  boolean sent() {
    return sent;
  }

  @Override
  public ClientStreamTracer newClientStreamTracer(
      ClientStreamTracer.StreamInfo info, Metadata headers) {
    return new ClientStreamTracer() {
      @Override
      public void outboundHeaders() {
        sent = true;
      }
    };
  }
}
