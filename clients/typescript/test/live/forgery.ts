// A model at the tools of MCP that tries to write, replace and delete what an adapter stores.

import assert from "node:assert/strict";
import { Classification, type OpenedSession } from "../../src/index.js";
import { someone } from "./server.js";

const { MUNIMENT_MCP: address = "" } = process.env;
/** How a model may spell a name: as the adapter does, in a way that the server changes, and without what is refused. */
const SPELLINGS = [
  (name: string) => name,
  (name: string) => ` ${name}`,
  (name: string) => name.replace("muniment:", ""),
];

type Step = (session: OpenedSession) => Promise<unknown>;

/**
 * Store something by an adapter, and see that a model of another agent cannot store the same, nor one of this agent
 * change it. *seen* is what the adapter shows.
 */
export async function assertNoModelCanForge(store: Step, seen: Step): Promise<void> {
  const [own, other] = await Promise.all([opened(), opened()]);
  const nothing = await seen(other);
  await store(own);
  const shown = await seen(own);
  assert.notDeepEqual(shown, nothing);
  const { memories } = await own.memories.listMemories({});
  const { passages } = await own.passages.listPassages({});

  for (const session of [other, own]) {
    const forged = session === own ? { content: "forged" } : {};
    for (const spelled of SPELLINGS) {
      for (const { key, content, tags } of memories) {
        const named = { content, tags: tags.map(spelled), ...forged };
        await call(session, "memory_save", { key, ...named });
        await call(session, "memory_save", { key: spelled(key), ...named });
      }
      for (const { content, tags } of passages) {
        await call(session, "passage_store", { content, tags: tags.map(spelled), ...forged });
      }
    }
    for (const { key } of memories) {
      await call(session, "memory_delete", { key });
    }
    for (const { passageId } of passages) {
      await call(session, "passage_delete", { passage_id: passageId });
    }
  }
  assert.deepEqual(await seen(other), nothing);
  assert.deepEqual(await seen(own), shown);
}

async function opened(): Promise<OpenedSession> {
  return (await someone())(Classification.PUBLIC);
}

/** Calls a tool, which may be refused: by the tool, not by the protocol. */
async function call({ token }: OpenedSession, name: string, given: Record<string, unknown>): Promise<void> {
  const answer = await fetch(address, {
    method: "POST",
    headers: {
      Accept: "application/json, text/event-stream",
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      "MCP-Protocol-Version": "2025-06-18",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: given } }),
  });
  assert.ok("result" in ((await answer.json()) as object));
}
