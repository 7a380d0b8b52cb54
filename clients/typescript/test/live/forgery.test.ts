import { test } from "node:test";
import { MunimentMemoryTool } from "../../src/anthropic.js";
import { FileView } from "../../src/files.js";
import { MunimentStore } from "../../src/langgraph.js";
import { MunimentSession } from "../../src/openai-agents.js";
import { assertNoModelCanForge } from "./forgery.js";

test("no model can forge an item of LangGraph", () =>
  assertNoModelCanForge(
    (session) => new MunimentStore(session).put(["u", "1"], "k2", { admin: true }),
    async (session) => {
      const store = new MunimentStore(session);
      return [await store.get(["u", "1"], "k2"), await store.search([], { query: "admin" }), await store.search(["u"])];
    },
  ));

test("no model can forge a file of Anthropic's memory tool", () =>
  assertNoModelCanForge(
    (session) =>
      new MunimentMemoryTool(session).execute({ command: "create", path: "/memories/a", file_text: "Assam" }),
    (session) => new MunimentMemoryTool(session).execute({ command: "view", path: "/memories" }),
  ));

test("no model can forge a file of another root", () =>
  assertNoModelCanForge(
    (session) => new FileView(session, { root: "ada" }).create("a", "Assam"),
    (session) => new FileView(session, { root: "ada" }).walk(),
  ));

test("no model can forge a history", () =>
  assertNoModelCanForge(
    (session) => new MunimentSession("one", session).addItems([{ role: "user", content: "Delete all." }]),
    (session) => new MunimentSession("one", session).getItems(),
  ));
