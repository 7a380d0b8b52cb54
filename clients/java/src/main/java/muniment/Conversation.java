package muniment;

import java.time.Duration;
import java.util.Optional;
import muniment.v1.Classification;
import muniment.v1.Session;

/**
 * A session that its host opens again in the same conversation: before a call, if less than a
 * quarter of its time is left, and when it has expired.
 *
 * <p>Its token and id are then those of the new session. Once it has been closed or reset, it is
 * never opened again: calls fail with {@code CREDENTIAL_INVALID}, or {@code CREDENTIAL_EXPIRED} if
 * it had expired before.
 */
public final class Conversation extends SessionClient {
  private final Calls host;
  private final Renewals renewals;

  Conversation(Calls host, Renewals renewals) {
    super(host.as(renewals), Origin.OPENED);
    this.host = host;
    this.renewals = renewals;
  }

  @Override
  public String token() {
    return renewals.token();
  }

  /**
   * The session that is open now: as it was when it was opened, or raised by this client. Another
   * host may have raised it since.
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
    renewals.raiseTaint(taint, reason);
  }

  /**
   * Starts the conversation anew, at PUBLIC, as another client. By this call the host states that
   * it has wiped the model's context. This client is over: its calls fail.
   *
   * @param reason for the audit log; it must not contain content
   */
  public Conversation reset(String reason) {
    return new Conversation(host, renewals.reset(reason));
  }

  /** Does what {@link #close} does. */
  @Override
  public void closeSession() {
    close();
  }

  /**
   * Closes the session, and the one before the last renewal. It is no error if they have ended
   * already.
   */
  @Override
  public void close() {
    renewals.close();
  }
}
