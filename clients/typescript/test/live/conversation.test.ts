// Conversations on a real server, whose sessions are renewed for a second.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Classification, type Conversation, MunimentError } from "../../src/index.js";
import { failureOf } from "../fake.js";
import { host } from "./server.js";

const SECOND = { seconds: 1n };

async function conversation(options = {}): Promise<Conversation> {
  const { agent } = await host.agents.createAgent({});
  return host.conversation(agent?.agentId ?? "", "chat-42", options);
}

/** Saves until the session was renewed. */
async function renewed(talk: Conversation): Promise<void> {
  const { expireTime } = talk.info;
  while (talk.info.expireTime === expireTime) {
    await talk.memories.saveMemory({ key: "k", content: "c" });
  }
}

test("a conversation goes on at its taint, whoever has raised it", async () => {
  await using talk = await conversation({ ttl: SECOND });
  const { sessionId, conversationId } = talk.info;
  await host.sessions.raiseTaint({ sessionId, taint: Classification.CONFIDENTIAL });

  await renewed(talk);
  await renewed(talk);

  assert.deepEqual([talk.info.conversationId, talk.info.taint], [conversationId, Classification.CONFIDENTIAL]);
});

test("a list goes on over a renewal", async () => {
  await using talk = await conversation({ ttl: SECOND });
  await talk.memories.saveMemories({ memories: ["a", "b", "k"].map((key) => ({ key, content: "c" })) });
  const first = await talk.memories.listMemories({ pageSize: 1 });

  await renewed(talk);

  const next = await talk.memories.listMemories({ pageSize: 1, pageToken: first.nextPageToken });
  assert.deepEqual(
    next.memories.map(({ key }) => key),
    ["b"],
  );
});

test("a conversation that is raised and reset is the one that is open now", async () => {
  await using talk = await conversation({ ttl: SECOND });
  await renewed(talk);
  await talk.raiseTaint(Classification.INTERNAL, "a test");
  await using anew = await talk.reset("a test");

  assert.deepEqual([anew.info.conversationId, anew.info.taint], ["chat-42", Classification.PUBLIC]);
  await renewed(anew);
  assert.ok((await failureOf(talk.memories.listMemories({}))) instanceof MunimentError);
});

test("a conversation that is closed leaves no session open", async () => {
  const talk = await conversation({ ttl: SECOND });
  await renewed(talk);

  await talk.close();

  const { sessions } = await host.sessions.listSessions({ agentId: talk.info.agentId });
  assert.deepEqual(sessions, []);
});
