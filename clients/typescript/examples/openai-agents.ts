import { type Agent, Runner } from "@openai/agents-core";
import type { SessionClient } from "muniment";
import { MunimentSession } from "muniment/openai-agents";

/** Answer with an agent that knows what was said before in a conversation. */
export async function reply(agent: Agent, session: SessionClient, conversation: string, said: string) {
  const runner = new Runner({ tracingDisabled: true });
  const { finalOutput } = await runner.run(agent, said, { session: new MunimentSession(conversation, session) });
  return finalOutput;
}
