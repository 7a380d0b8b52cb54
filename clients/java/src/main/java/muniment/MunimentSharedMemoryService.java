package muniment;

import java.util.function.Function;
import muniment.v1.Classification;
import muniment.v1.ErrorReason;

/**
 * A memory service for an application of Google's ADK, at one level, with an agent for each of its
 * users.
 *
 * <p>It opens a session for each call, because ADK does not say to which conversation a call
 * belongs. So it is right for an application all of whose conversations are at that level; where a
 * conversation may rise, give each a {@link MunimentMemoryService}. It does not close the client.
 */
public final class MunimentSharedMemoryService extends AdkMemory {
  private final HostClient host;
  private final Classification level;

  /** A service for a host. */
  public MunimentSharedMemoryService(HostClient host, Classification level) {
    this.host = host;
    this.level = level;
  }

  @Override
  <T> T with(Owner owner, Function<SessionClient, T> call) {
    try (var session = open(owner)) {
      return call.apply(session);
    }
  }

  /**
   * Creates the agent only if there is none: a tenant that has as many agents as its limits allow
   * is refused even one that exists.
   */
  private SessionClient open(Owner owner) {
    try {
      return openSession(owner);
    } catch (MunimentException error) {
      throwUnless(error, ErrorReason.ERROR_REASON_AGENT_NOT_FOUND);
    }
    try {
      host.createAgent(r -> r.setAgentId(owner.agent()).setDisplayName(owner.app()));
    } catch (MunimentException error) { // created meanwhile
      throwUnless(error, ErrorReason.ERROR_REASON_AGENT_EXISTS);
    }
    return openSession(owner);
  }

  private SessionClient openSession(Owner owner) {
    return host.openSession(r -> r.setAgentId(owner.agent()).setTaint(level));
  }

  private static void throwUnless(MunimentException error, ErrorReason expected) {
    if (error.reason() != expected) {
      throw error;
    }
  }
}
