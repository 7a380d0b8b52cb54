// The examples of the README that need a framework, on a real server, with a model that is scripted.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { Agent, type Model, Usage } from "@openai/agents-core";
import { ask } from "../../examples/anthropic.js";
import { reply } from "../../examples/openai-agents.js";
import { Classification } from "../../src/index.js";
import { someone } from "./server.js";

test("the example of Anthropic's memory tool", async () => {
  const session = await (await someone())(Classification.INTERNAL);
  const input = { command: "create", path: "/memories/tea.md", file_text: "Assam" };
  const asked: string[] = [];
  const script = [
    { stop_reason: "tool_use", content: [{ type: "tool_use", id: "1", name: "memory", input }] },
    { stop_reason: "end_turn", content: [{ type: "text", text: "I remember." }] },
  ];
  const fetch = async (_: unknown, request?: { body?: unknown }) => {
    asked.push(String(request?.body));
    const message = { id: "1", type: "message", role: "assistant", model: "m", usage: {}, ...script[asked.length - 1] };
    return new Response(JSON.stringify(message), { headers: { "content-type": "application/json" } });
  };

  assert.equal(await ask(new Anthropic({ apiKey: "none", fetch }), session, "Remember my tea."), "I remember.");
  assert.match(asked[0] ?? "", /"memory_20250818"/);
  assert.match(asked[1] ?? "", /File created successfully at: \/memories\/tea\.md/);
  const { memory } = await session.memories.getMemory({ key: "muniment:files/tea.md" });
  assert.deepEqual([memory?.content, memory?.classification], ["Assam", Classification.INTERNAL]);
});

test("the example of the OpenAI Agents SDK", async () => {
  const session = await (await someone())(Classification.INTERNAL);
  const model: Model = {
    getResponse: async ({ input }) => {
      const text = `${input.length} items`;
      const content = [{ type: "output_text" as const, text }];
      return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
    },
    getStreamedResponse: () => {
      throw new Error("nothing is streamed");
    },
  };
  const agent = new Agent({ name: "counter", model });

  assert.equal(await reply(agent, session, "one", "Hello."), "1 items");
  assert.equal(await reply(agent, session, "one", "Hello again."), "3 items");
  assert.equal(await reply(agent, session, "other", "Hello."), "1 items");
});
