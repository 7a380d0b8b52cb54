package muniment;

import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import io.grpc.Deadline;
import io.grpc.Status.Code;
import java.util.concurrent.TimeUnit;
import muniment.v1.RenewSessionRequest;
import muniment.v1.Session;
import muniment.v1.SessionServiceGrpc;

/** The token of a conversation, whose host renews the session, in time or when it has expired. */
final class Renewals implements Credential {
  private final Calls host;
  private final String token;
  private final long lengthNanos;

  private volatile Session shown;
  private volatile long dueNanos;

  /** Of a session that a call has opened which began at a time of the monotonic clock. */
  Renewals(Calls host, String token, Session opened, long begunNanos) {
    this.host = host;
    this.token = Credential.checked(token);
    this.lengthNanos = lengthNanos(opened);
    take(opened, begunNanos);
  }

  @Override
  public String token() {
    return token;
  }

  /** The session as it was opened, renewed or raised by this client. */
  Session session() {
    return shown;
  }

  void show(Session session) {
    shown = session;
  }

  /** Three quarters of its time pass until it is due. */
  private void take(Session session, long begunNanos) {
    shown = session;
    dueNanos = begunNanos + lengthNanos / 4 * 3;
  }

  /**
   * Other calls go on meanwhile, for a twentieth of the session's time. A failure is left to a
   * later one: the token is valid for a while yet.
   */
  @Override
  public void fresh(Deadline deadline) {
    long now = System.nanoTime();
    if (now - dueNanos < 0) {
      return;
    }
    dueNanos = now + lengthNanos / 20;
    try {
      renew(deadline);
    } catch (MunimentException failed) {
      return;
    }
  }

  @Override
  public boolean renewed(MunimentException refusal, Deadline deadline) {
    if (!refusal.reasonName().equals(EXPIRED)) {
      return false;
    }
    try {
      renew(deadline);
      return true;
    } catch (MunimentException error) {
      if (error.code() == Code.NOT_FOUND && error.reasonName().equals("SESSION_NOT_FOUND")) {
        return false; // somebody has ended it: it is for the host to clear the model's context
      }
      throw error;
    }
  }

  private void renew(Deadline deadline) {
    long begun = System.nanoTime();
    var ttl =
        Duration.newBuilder()
            .setSeconds(TimeUnit.NANOSECONDS.toSeconds(lengthNanos))
            .setNanos((int) (lengthNanos % TimeUnit.SECONDS.toNanos(1)));
    var request = RenewSessionRequest.newBuilder().setSessionId(shown.getSessionId()).setTtl(ttl);
    take(
        host.call(SessionServiceGrpc.getRenewSessionMethod(), request.build(), deadline)
            .getSession(),
        begun);
  }

  private static long lengthNanos(Session session) {
    Timestamp created = session.getCreateTime();
    Timestamp expires = session.getExpireTime();
    long seconds = TimeUnit.SECONDS.toNanos(expires.getSeconds() - created.getSeconds());
    return seconds + expires.getNanos() - created.getNanos();
  }
}
