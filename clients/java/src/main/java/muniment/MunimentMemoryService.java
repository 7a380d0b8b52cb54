package muniment;

import java.util.Objects;
import java.util.function.Function;

/**
 * A memory service for Google's ADK, whose package a program brings: the memory of one
 * conversation, whose taint the host raises as usual. It is that of the session's agent, up to the
 * session's taint, with the memories of each application and user apart.
 *
 * <p>An event with text is a passage: the text of its parts, the author, the time, the ADK session
 * as its thread, and a tag for application and user. So a session that is added again is stored
 * once. The tag begins with {@code muniment:}, which no tool lets a model write: a passage that a
 * model stores is no event.
 *
 * <p>No model names a level or an agent. Memories above the taint do not exist. What ADK for Python
 * deleted stays deleted, also if its ADK session is added again; ADK for Java has no way to delete
 * a memory. A search returns the ten best matches, among them what was said right before and after
 * one. Custom metadata is not stored. It does not close the session.
 */
public final class MunimentMemoryService extends AdkMemory {
  private final SessionClient session;

  /** A service for a session. */
  public MunimentMemoryService(SessionClient session) {
    this.session = Objects.requireNonNull(session, "session");
  }

  @Override
  <T> T with(Owner owner, Function<SessionClient, T> call) {
    return call.apply(session);
  }
}
