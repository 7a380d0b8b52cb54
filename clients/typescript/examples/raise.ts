import { Classification, type HostClient, type OpenedSession, pages } from "muniment";

/** Raise the taint for an answer that the model is about to see, then read again what the session sees. */
export async function raise(host: HostClient, session: OpenedSession, reason: string): Promise<string[]> {
  const { sessionId } = session.info;
  await host.sessions.raiseTaint({ sessionId, taint: Classification.CONFIDENTIAL, reason });
  const read = await pages(session.memories.listMemories, {}).all({ restartOnTaintChange: true });
  return read.flatMap((page) => page.memories.map((memory) => memory.key));
}
