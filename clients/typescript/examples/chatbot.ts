/**
 * The chatbot of the website: a host, its tools, and a script in place of a model. See `clients/three_services.sh`.
 *
 * Its key reaches PUBLIC only. Each line of the standard input is a message in the conversation.
 */
import { createInterface } from "node:readline/promises";
import { Classification, type Conversation, connectHost, MunimentError } from "muniment";

const LEDGER = "240 euros since May";

/** What the model can do. It names no level: the host raises the taint before it shows the model more. */
class Tools {
  constructor(private readonly conversation: Conversation) {}

  /** What the service remembers, best match first. */
  async recall(query: string): Promise<string> {
    const { results } = await this.conversation.memories.searchMemories({ query, maxResults: 1 });
    return results[0]?.memory?.content ?? "I do not know.";
  }

  /** Save a memory, at the taint of the conversation. */
  async remember(key: string, content: string): Promise<void> {
    await this.conversation.memories.saveMemory({ key, content });
  }

  /** What the customer owes. A chatbot should not have this tool; its key sees to it that nothing comes of it. */
  async readLedger(): Promise<string> {
    await this.conversation.raiseTaint(Classification.CONFIDENTIAL, "read the ledger");
    return LEDGER;
  }
}

/** A script. A service would send all three to a model, and run the calls that it asks for. */
async function model(_prompt: string, message: string, tools: Tools): Promise<string> {
  const moved = /^I moved to (.*)\.$/.exec(message)?.[1];
  if (moved) {
    await tools.remember("address", moved);
    return "I have noted it.";
  }
  if (message.includes("ledger")) {
    return tools.readLedger();
  }
  return tools.recall(message.includes("owe") ? "debt" : message);
}

async function main(agentId: string, conversationId: string): Promise<void> {
  const host = connectHost();
  await using conversation = await host.conversation(agentId, conversationId);
  const tools = new Tools(conversation);
  for await (const message of createInterface({ input: process.stdin })) {
    const { text } = await conversation.prompts.renderPrompt({});
    try {
      console.log("chatbot:", await model(text, message, tools));
    } catch (error) {
      if (!(error instanceof MunimentError)) {
        throw error;
      }
      console.log("chatbot: I cannot do that:", error.reason);
    }
  }
}

await main(process.argv[2] ?? "", process.argv[3] ?? "");
