package muniment;

import java.time.Duration;
import java.util.Optional;
import muniment.v1.Classification;
import muniment.v1.OpenSessionRequest;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.ResetSessionRequest;
import muniment.v1.Session;
import muniment.v1.SessionServiceGrpc;

/**
 * A session that its host renews: before a call, if less than a quarter of its time is left, and
 * when it has expired.
 *
 * <p>Once it has been closed or reset, it is never renewed: calls fail with {@code
 * CREDENTIAL_INVALID}, or {@code CREDENTIAL_EXPIRED} if it had expired before.
 */
public final class Conversation extends SessionClient {
  private final Calls host;
  private final Renewals renewals;

  private Conversation(Calls host, Renewals renewals) {
    super(host.as(renewals), Origin.OPENED);
    this.host = host;
    this.renewals = renewals;
  }

  static Conversation open(Calls host, OpenSessionRequest request) {
    long begun = System.nanoTime();
    var opened = host.call(SessionServiceGrpc.getOpenSessionMethod(), request);
    return new Conversation(
        host, new Renewals(host, opened.getToken(), opened.getSession(), begun));
  }

  @Override
  public String token() {
    return renewals.token();
  }

  /**
   * The session as it was opened, renewed or raised by this client. Another host may have raised it
   * since.
   */
  @Override
  public Optional<Session> opened() {
    return Optional.of(renewals.session());
  }

  @Override
  public String sessionId() {
    return renewals.session().getSessionId();
  }

  @Override
  public Conversation withTimeout(Duration timeout) {
    return new Conversation(host.within(timeout), renewals);
  }

  /**
   * Raises the taint of the conversation. Reveal to the model only after it has returned.
   *
   * @param reason for the audit log; it must not contain content
   */
  public void raiseTaint(Classification taint, String reason) {
    renewals.fresh(host.deadline());
    var request = RaiseTaintRequest.newBuilder().setSessionId(sessionId()).setTaint(taint);
    renewals.show(
        host.call(SessionServiceGrpc.getRaiseTaintMethod(), request.setReason(reason).build())
            .getSession());
  }

  /**
   * Starts the conversation anew, at PUBLIC, as another client. By this call the host states that
   * it has wiped the model's context. This client is over: its calls fail.
   *
   * @param reason for the audit log; it must not contain content
   */
  public Conversation reset(String reason) {
    renewals.fresh(host.deadline());
    long begun = System.nanoTime();
    var request = ResetSessionRequest.newBuilder().setSessionId(sessionId()).setReason(reason);
    var reset = host.call(SessionServiceGrpc.getResetSessionMethod(), request.build());
    return new Conversation(host, new Renewals(host, reset.getToken(), reset.getSession(), begun));
  }
}
