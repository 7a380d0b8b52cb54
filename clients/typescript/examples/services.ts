import { Classification, type HostClient, type OpenedSession } from "muniment";

/** Open a session for a service whose key does not reach the ceiling of the agent. */
export async function serve(host: HostClient, service: HostClient, agentId: string): Promise<OpenedSession> {
  await host.agents.updateAgent({ agentId, knownFrom: Classification.PUBLIC });
  return service.openSession({ agentId, conversationId: "chat-42" });
}
