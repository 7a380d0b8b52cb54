package muniment;

import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import io.grpc.Deadline;
import io.grpc.Status.Code;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import muniment.v1.Classification;
import muniment.v1.CloseSessionRequest;
import muniment.v1.GetSessionRequest;
import muniment.v1.Integrity;
import muniment.v1.OpenSessionRequest;
import muniment.v1.OpenSessionResponse;
import muniment.v1.RaiseTaintRequest;
import muniment.v1.ResetSessionRequest;
import muniment.v1.ResetSessionResponse;
import muniment.v1.Session;
import muniment.v1.SessionServiceGrpc;

/**
 * The token of a conversation: its host opens the session again, in time or when it has expired.
 */
final class Renewals implements Credential {
  /** A session that the host has opened, and when to renew it, by the monotonic clock. */
  private static final class Held {
    private final String token;
    private final Session session;
    private final long dueNanos;

    Held(String token, Session session, long begunNanos) {
      this.token = Credential.checked(token);
      this.session = session;
      this.dueNanos = begunNanos + usedNanos(session);
    }

    boolean isDue() {
      return System.nanoTime() - dueNanos >= 0;
    }
  }

  private final Calls host;
  private final Optional<Duration> ttl;

  /** Whoever has it renews, or ends that. */
  private final ReentrantLock turn = new ReentrantLock();

  private volatile Held now;
  private volatile Optional<Held> previous = Optional.empty();
  private volatile Session shown;
  private volatile boolean over;

  /** The sessions that closing closes: at most the previous one and the one that holds now. */
  private final Deque<String> open = new ArrayDeque<>();

  private Renewals(Calls host, Optional<Duration> ttl, Held opened) {
    this.host = host;
    this.ttl = ttl;
    take(opened);
  }

  static Renewals open(Calls host, OpenSessionRequest request) {
    Optional<Duration> ttl = request.hasTtl() ? Optional.of(request.getTtl()) : Optional.empty();
    return new Renewals(host, ttl, opened(host, request, host.deadline()));
  }

  String token() {
    return now.token;
  }

  /** The session that is open now: as it was opened, or raised by this client. */
  Session session() {
    return shown;
  }

  /** If the renewal fails, the old token is still valid for a while. */
  @Override
  public String fresh(Deadline deadline) {
    Held held = now;
    if (held.isDue()) {
      try {
        renewed(held.token, deadline);
      } catch (MunimentException failed) {
        return now.token;
      }
    }
    return now.token;
  }

  @Override
  public Optional<String> replacement(String sent, MunimentException refusal, Deadline deadline) {
    return switch (refusal.reasonName()) {
      case "PAGE_TOKEN_INVALID" -> previous.map(held -> held.token); // it may be of that one
      case EXPIRED -> renewed(sent, deadline) ? Optional.of(now.token) : Optional.empty();
      default -> Optional.empty();
    };
  }

  void raiseTaint(Classification taint, String reason) {
    fresh(host.deadline());
    var request = RaiseTaintRequest.newBuilder().setTaint(taint).setReason(reason);
    Session raised =
        host.call(
                SessionServiceGrpc.getRaiseTaintMethod(),
                request.setSessionId(shown.getSessionId()).build())
            .getSession();
    if (raised.getSessionId().equals(shown.getSessionId())) {
      shown = raised;
    }
  }

  /** Those of the conversation after it was reset. These end. */
  Renewals reset(String reason) {
    Deadline deadline = host.deadline();
    fresh(deadline);
    return inTurn(
        deadline,
        () -> {
          long begun = System.nanoTime();
          var request = ResetSessionRequest.newBuilder().setSessionId(shown.getSessionId());
          ResetSessionResponse reset =
              host.call(
                  SessionServiceGrpc.getResetSessionMethod(), request.setReason(reason).build());
          over = true;
          return new Renewals(host, ttl, new Held(reset.getToken(), reset.getSession(), begun));
        });
  }

  /** Renews no more, and closes what is open. */
  void close() {
    inTurn(
        host.deadline(),
        () -> {
          over = true;
          while (!open.isEmpty()) {
            closeUnlessGone(open.peek());
            open.remove();
          }
          return null;
        });
  }

  private void closeUnlessGone(String sessionId) {
    try {
      host.call(
          SessionServiceGrpc.getCloseSessionMethod(),
          CloseSessionRequest.newBuilder().setSessionId(sessionId).build());
    } catch (MunimentException error) {
      if (!isGone(error)) {
        throw error;
      }
    }
  }

  /** Whether there is another token in place of an old one, after at most one renewal. */
  private boolean renewed(String old, Deadline deadline) {
    return inTurn(
        deadline,
        () -> {
          if (!now.token.equals(old)) {
            return true; // by another thread
          }
          Optional<Held> opened = renewable(deadline).map(found -> reopened(found, deadline));
          opened.ifPresent(this::take);
          return opened.isPresent();
        });
  }

  private <T> T inTurn(Deadline deadline, Supplier<T> action) {
    try {
      if (!turn.tryLock(deadline.timeRemaining(TimeUnit.NANOSECONDS), TimeUnit.NANOSECONDS)) {
        throw Calls.late();
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw Calls.canceled(interrupted);
    }
    try {
      return action.get();
    } finally {
      turn.unlock();
    }
  }

  /** Makes a session the one that is open now. */
  private void take(Held opened) {
    previous = Optional.ofNullable(now);
    now = opened;
    shown = opened.session;
    open.add(shown.getSessionId());
    if (open.size() > 2) {
      open.remove();
    }
  }

  /**
   * The session as it is now. Empty if somebody has ended it: then it is for the host to clear the
   * model's context.
   */
  private Optional<Session> renewable(Deadline deadline) {
    if (over) {
      return Optional.empty();
    }
    var request = GetSessionRequest.newBuilder().setSessionId(shown.getSessionId()).build();
    try {
      return Optional.of(host.call(SessionServiceGrpc.getGetSessionMethod(), request, deadline))
          .map(found -> found.getSession())
          .filter(Renewals::goesOn)
          .filter(found -> found.getTaintValue() >= shown.getTaintValue()) // or a raise was lost
          .filter(found -> found.getIntegrityValue() <= shown.getIntegrityValue());
    } catch (MunimentException error) {
      if (!isGone(error)) {
        throw error;
      }
      return Optional.empty();
    }
  }

  /** After how long a session is renewed: when a quarter of its time is left. */
  static long usedNanos(Session session) {
    Timestamp created = session.getCreateTime();
    Timestamp expires = session.getExpireTime();
    long seconds = TimeUnit.SECONDS.toNanos(expires.getSeconds() - created.getSeconds());
    return (seconds + expires.getNanos() - created.getNanos()) / 4 * 3;
  }

  /** One that has expired is closed at that time, or not at all. */
  private static boolean goesOn(Session session) {
    return !session.hasCloseTime() || session.getCloseTime().equals(session.getExpireTime());
  }

  /** Never without a taint: the conversation may be reset meanwhile. */
  private Held reopened(Session found, Deadline deadline) {
    var request =
        OpenSessionRequest.newBuilder()
            .setAgentId(found.getAgentId())
            .setConversationId(found.getConversationId())
            .setTaint(found.getTaint())
            .setIntegrity(found.getIntegrity())
            .setReadOnly(found.getReadOnly());
    ttl.ifPresent(request::setTtl);
    for (int raises = 0; ; raises++) {
      try {
        return opened(host, request.build(), deadline);
      } catch (MunimentException error) {
        if (error.taint().isEmpty() || raises == Pages.RAISES) {
          throw error;
        }
        if (error.taint().get() == request.getTaint()) {
          // The integrity is the half that was raised.
          request.setIntegrity(Integrity.INTEGRITY_UNTRUSTED);
        }
        request.setTaint(error.taint().get());
      }
    }
  }

  private static Held opened(Calls host, OpenSessionRequest request, Deadline deadline) {
    long begun = System.nanoTime();
    OpenSessionResponse opened =
        host.call(SessionServiceGrpc.getOpenSessionMethod(), request, deadline);
    return new Held(opened.getToken(), opened.getSession(), begun);
  }

  private static boolean isGone(MunimentException error) {
    return error.code() == Code.NOT_FOUND && error.reasonName().equals("SESSION_NOT_FOUND");
  }
}
