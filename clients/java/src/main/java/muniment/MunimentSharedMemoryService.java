package muniment;

import com.google.adk.memory.MemoryEntry;
import com.google.protobuf.Duration;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import muniment.v1.Classification;
import muniment.v1.ErrorReason;
import muniment.v1.StorePassageRequest;

/**
 * A memory service for an application of Google's ADK, at one level, with an agent for each of its
 * users.
 *
 * <p>It opens a session for each call, because ADK does not say to which conversation a call
 * belongs. So it is right for an application all of whose conversations are at that level; where a
 * conversation may rise, give each a {@link MunimentMemoryService}. A user's agent is created when
 * something is stored for the user for the first time. The service does not close the client.
 */
public final class MunimentSharedMemoryService extends AdkMemory {
  /**
   * How long a session for one call stays open if closing it fails: longer than any import takes,
   * even when it is repeated.
   */
  private static final Duration TTL = Duration.newBuilder().setSeconds(60 * 60).build();

  private final HostClient host;
  private final Classification level;

  /** A service for a host. */
  public MunimentSharedMemoryService(HostClient host, Classification level) {
    this.host = Objects.requireNonNull(host, "host");
    this.level = Objects.requireNonNull(level, "level");
  }

  @Override
  <T> T with(Owner owner, Function<SessionClient, T> call) {
    var session = host.openSession(r -> r.setAgentId(owner.agent()).setTaint(level).setTtl(TTL));
    try {
      return call.apply(session);
    } finally {
      close(session);
    }
  }

  /** A failed close does not change the result of the call. */
  private static void close(SessionClient session) {
    try {
      session.close();
    } catch (MunimentException ignored) {
      // The session expires by itself.
    }
  }

  /** Creates the agent only if there is none: CreateAgent locks the limits of the tenant. */
  @Override
  void store(Owner owner, List<StorePassageRequest> passages) {
    try {
      super.store(owner, passages);
      return;
    } catch (MunimentException error) {
      throwUnless(error, ErrorReason.ERROR_REASON_AGENT_NOT_FOUND);
    }
    try {
      host.createAgent(r -> r.setAgentId(owner.agent()).setDisplayName(owner.app()));
    } catch (MunimentException error) { // created meanwhile
      throwUnless(error, ErrorReason.ERROR_REASON_AGENT_EXISTS);
    }
    super.store(owner, passages);
  }

  @Override
  List<MemoryEntry> found(Owner owner, String query) {
    try {
      return super.found(owner, query);
    } catch (MunimentException error) {
      throwUnless(error, ErrorReason.ERROR_REASON_AGENT_NOT_FOUND);
      return List.of();
    }
  }

  private static void throwUnless(MunimentException error, ErrorReason expected) {
    if (error.reason() != expected) {
      throw error;
    }
  }
}
