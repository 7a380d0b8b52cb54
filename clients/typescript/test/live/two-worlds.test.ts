// Two worlds, seen through each adapter: what a session above does changes nothing below; and a leak is found.

import assert from "node:assert/strict";
import { test } from "node:test";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { type Session, user } from "@openai/agents-core";
import { type MemoryCommand, MunimentMemoryTool } from "../../src/anthropic.js";
import { type File, FileView } from "../../src/files.js";
import type { SessionClient } from "../../src/index.js";
import { MunimentStore } from "../../src/langgraph.js";
import { MunimentSession } from "../../src/openai-agents.js";
import { type Adapter, type Calls, leaking, seenBelow } from "./worlds.js";

const PATHS = ["plan.md", "pay/salary.md", "pay"];

/** Etags are random. */
function plain({ etag: _, ...file }: File): object {
  return file;
}

function files(session: SessionClient, text: string): Calls {
  const view = new FileView(session);
  return [
    ...PATHS.flatMap((path) => [
      async () => plain(await view.create(path, text)),
      async () => plain((await view.replace(path, text, `${text}!`)).file),
      async () => plain(await view.insert(path, 0, text)),
      () => view.exists(path),
    ]),
    async () => (await view.walk()).map(plain),
    () => view.ls("", 3),
    () => view.glob("**"),
    () => view.grep(""),
    () => view.rename("pay", "paid"),
    () => view.delete("plan.md"),
    () => view.ls(),
  ];
}

function anthropic(session: SessionClient, text: string): Calls {
  const tool = betaMemoryTool(new MunimentMemoryTool(session));
  const commands: MemoryCommand[] = [
    ...PATHS.map((path) => `/memories/${path}`).flatMap((path): MemoryCommand[] => [
      { command: "create", path, file_text: text },
      { command: "str_replace", path, old_str: text, new_str: `${text}!` },
      { command: "insert", path, insert_line: 0, insert_text: text },
      { command: "view", path },
    ]),
    { command: "view", path: "/memories" },
    { command: "rename", old_path: "/memories/pay", new_path: "/memories/paid" },
    { command: "delete", path: "/memories/plan.md" },
    { command: "view", path: "/memories" },
  ];
  return commands.map((command) => async () => tool.run(command));
}

function langgraph(session: SessionClient, text: string): Calls {
  const store: BaseStore = new MunimentStore(session);
  // Scores and their order depend on which embeddings the server has made so far. Each item has a word of the query.
  const search = (query?: string) => async () =>
    (await store.search([], { query })).map(({ namespace, value }) => JSON.stringify([namespace, value])).sort();
  return [
    ...["plan", "salary", text].flatMap((name) => [
      async () => (await store.get([name], "own"))?.value,
      () => store.put([name], "own", { text }),
      async () => (await store.get([name], "own"))?.value,
    ]),
    search(),
    search("low high"),
    () => store.delete(["plan"], "own"),
    search(),
    () => store.listNamespaces(),
  ];
}

function openaiAgents(session: SessionClient, text: string): Calls {
  const history: Session = new MunimentSession("one", session);
  const add = () => history.addItems([user(text)]);
  const read = () => history.getItems();
  const newest = () => history.getItems(1);
  const pop = () => history.popItem();
  const clear = () => history.clearSession();
  return [read, add, read, add, read, newest, pop, read, clear, read];
}

for (const [name, adapter] of Object.entries<Adapter>({ files, anthropic, langgraph, openaiAgents })) {
  test(`what happens above changes nothing below, through ${name}`, async () => {
    const alone = await seenBelow(adapter, { above: false });
    assert.deepEqual(await seenBelow(adapter, { above: true }), alone);
  });

  test(`if ${name} shared its session, it would show`, async () => {
    const alone = await seenBelow(leaking(adapter), { above: false });
    assert.deepEqual(alone, await seenBelow(adapter, { above: false }));
    const beside = await seenBelow(leaking(adapter), { above: true });
    assert.notDeepEqual(beside, alone);
    assert.match(JSON.stringify(beside), /high/);
  });
}
