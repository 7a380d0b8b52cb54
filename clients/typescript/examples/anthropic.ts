import type Anthropic from "@anthropic-ai/sdk";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { SessionClient } from "muniment";
import { MunimentMemoryTool } from "muniment/anthropic";

/** Answer with a model whose memory is the session's. */
export async function ask(client: Anthropic, session: SessionClient, content: string): Promise<string> {
  const answer = await client.beta.messages.toolRunner({
    model: "claude-sonnet-5-5",
    max_tokens: 1024,
    messages: [{ role: "user", content }],
    tools: [betaMemoryTool(new MunimentMemoryTool(session))],
  });
  return answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
