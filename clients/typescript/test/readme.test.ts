import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { archive } from "../examples/archive.js";
import { addNote } from "../examples/budget.js";
import { talk } from "../examples/conversation.js";
import { raise } from "../examples/raise.js";
import { store } from "../examples/resume.js";
import {
  AddNoteEditSchema,
  AgentService,
  BudgetExceededSchema,
  Classification,
  Code,
  connect,
  DeleteNoteEditSchema,
  ImportProgressSchema,
  MemoryService,
  NoteService,
  PassageService,
  SessionService,
} from "../src/index.js";
import { Fake, status } from "./fake.js";

const ROOT = new URL("../../", import.meta.url);
const README = readFileSync(new URL("README.md", ROOT), "utf8");

/** The blocks of the README in one language. */
function blocks(language: string): string[] {
  return [...README.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, "gms"))].map((match) => match[1] ?? "");
}

test("the README shows the examples as they are", () => {
  const examples = new URL("examples/", ROOT);
  const names = readdirSync(examples).filter((name) => name !== "chatbot.ts"); // of the README of all clients
  const texts = names.map((name) => readFileSync(new URL(name, examples), "utf8"));
  assert.deepEqual(blocks("ts").sort(), texts.sort());
});

test("the first example prints what the README says", async () => {
  const saved: string[] = [];
  await using fake = await Fake.start((router) => {
    router.service(AgentService, { createAgent: () => ({ agent: { agentId: "a1" } }) });
    router.service(SessionService, {
      openSession: ({ agentId }) => ({ session: { agentId, sessionId: "s1" }, token: "t1" }),
      raiseTaint: () => ({}),
      closeSession: () => ({}),
    });
    router.service(MemoryService, {
      saveMemory: ({ key, content }) => {
        saved.push(`${key}: ${content}`);
        return {};
      },
      searchMemories: () => ({
        results: [{ memory: { key: "tea", classification: Classification.PUBLIC }, snippet: "Assam, no sugar" }],
      }),
    });
  });

  const example = new URL("../examples/quickstart.js", import.meta.url).pathname;
  const env = { ...process.env, MUNIMENT_ADDRESS: fake.address, MUNIMENT_HOST_KEY: "h", MUNIMENT_TLS_CA: "" };
  const { stdout } = await promisify(execFile)(process.execPath, [example], { env });

  assert.deepEqual([stdout], blocks("text"));
  assert.deepEqual(saved, ["tea: Assam, no sugar", "salary: 52,000 a year"]);
});

test("the example of pages stores a stream and lists what is stored", async () => {
  await using fake = await Fake.start((router) =>
    router.service(PassageService, {
      importPassages: async (requests) => {
        for await (const { passage } of requests) {
          stored.push(passage?.content ?? "");
        }
        return {};
      },
      listPassages: ({ pageToken }) =>
        pageToken ? { passages: [{ content: stored[1] }] } : { passages: [{ content: stored[0] }], nextPageToken: "2" },
    }),
  );
  const stored: string[] = [];

  const listed = await archive(connect({ address: fake.address, token: "t" }), ["Graz by bus.", "Never again."]);

  assert.deepEqual(listed, ["Graz by bus.", "Never again."]);
});

test("the example of a conversation raises it, and closes it", async () => {
  const made: string[] = [];
  const heard =
    <Answer>(name: string, answer: Answer) =>
    () => {
      made.push(name);
      return answer;
    };
  await using fake = await Fake.start((router) => {
    router.service(SessionService, {
      openSession: ({ agentId, conversationId }) => heard(`${agentId} ${conversationId}`, { token: "t1" })(),
      raiseTaint: heard("raise", {}),
      closeSession: heard("close", {}),
    });
    router.service(MemoryService, {
      saveMemory: heard("save", {}),
      listMemories: () => ({ memories: [{ key: "last-line", classification: Classification.PUBLIC }] }),
    });
  });

  assert.deepEqual(await talk(connect({ address: fake.address, hostKey: "h" }), "hello"), ["last-line PUBLIC"]);
  assert.deepEqual(made, ["ada chat-42", "save", "raise", "close"]);
});

test("the example of a raised taint reads the list again", async () => {
  const raised: (Classification | undefined)[] = [];
  let disturbances = 1;
  await using fake = await Fake.start((router) => {
    router.service(SessionService, {
      openSession: () => ({ session: { sessionId: "s1" }, token: "t1" }),
      raiseTaint: ({ taint }) => {
        raised.push(taint);
        return {};
      },
    });
    router.service(MemoryService, {
      listMemories: ({ pageToken }) => {
        if (pageToken === "") {
          return { memories: [{ key: "tea" }], nextPageToken: "2" };
        }
        if (disturbances > 0) {
          disturbances -= 1;
          throw status(Code.Aborted, "TAINT_CHANGED");
        }
        return { memories: [{ key: "salary" }] };
      },
    });
  });
  const host = connect({ address: fake.address, hostKey: "h" });

  assert.deepEqual(await raise(host, await host.openSession({}), "payroll"), ["tea", "salary"]);
  assert.deepEqual(raised, [Classification.CONFIDENTIAL]);
});

test("the example of an import goes on where a raised taint cut it off", async () => {
  const streams: string[][] = [];
  await using fake = await Fake.start((router) =>
    router.service(PassageService, {
      importPassages: async (requests) => {
        const stream: string[] = [];
        streams.push(stream);
        for await (const { passage } of requests) {
          stream.push(passage?.content ?? "");
        }
        if (streams.length === 1) {
          const value = { storedCount: 1, existingCount: 1 };
          throw status(Code.Aborted, "TAINT_CHANGED", { desc: ImportProgressSchema, value });
        }
        return {};
      },
    }),
  );

  await store(connect({ address: fake.address, token: "t" }), ["one", "two", "three"]);

  assert.deepEqual(streams, [["one", "two", "three"], ["three"]]);
});

test("the example of a budget makes room", async () => {
  const edited: unknown[] = [];
  const entries = [
    { noteId: "above", ownLevel: false },
    { noteId: "own", ownLevel: true },
  ];
  await using fake = await Fake.start((router) =>
    router.service(NoteService, {
      addNote: () => {
        throw status(Code.FailedPrecondition, "BUDGET_EXCEEDED", { desc: BudgetExceededSchema, value: { entries } });
      },
      editNotes: (request) => {
        edited.push(...request.edits.map(({ edit }) => ({ [edit.case ?? ""]: edit.value })));
        return {};
      },
    }),
  );

  await addNote(connect({ address: fake.address, token: "t" }), "Ada has moved to Graz");

  assert.deepEqual(edited, [
    { delete: create(DeleteNoteEditSchema, { noteId: "own" }) },
    { add: create(AddNoteEditSchema, { content: "Ada has moved to Graz" }) },
  ]);
});
