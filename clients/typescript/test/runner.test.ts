import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { BudgetExceededSchema, Code, NoteService, PassageService, SessionService } from "../src/index.js";
import { Fake, status } from "./fake.js";

const RUNNER = new URL("../conformance/runner.js", import.meta.url).pathname;

const NAMED = { "request-id": "r1" };

/** The lines that the runner prints for the steps of one scenario. */
async function played(address: string, steps: object[]): Promise<string[]> {
  const file = join(mkdtempSync(join(tmpdir(), "muniment-")), "scenarios.json");
  writeFileSync(file, JSON.stringify({ scenarios: [{ name: "s", steps }] }));
  const env = { ...process.env, MUNIMENT_ADDRESS: address, MUNIMENT_HOST_KEY: "h", MUNIMENT_TLS_CA: "" };
  const { stdout } = await promisify(execFile)(process.execPath, [RUNNER, file], { env });
  return stdout.trimEnd().split("\n");
}

function variable(name: string): string {
  return `\${${name}}`;
}

test("the conformance runner prints a line for each step", async () => {
  await using fake = await Fake.start((router) => {
    router.service(SessionService, {
      openSession: ({ taint }, { requestHeader }) => ({
        token: `${requestHeader.get("authorization")}`.slice(-1),
        session: { taint, createTime: { seconds: 1n, nanos: 500_000_000 } },
      }),
    });
    router.service(NoteService, {
      addNote: (_, { requestHeader }) => {
        const value = { overByChars: requestHeader.get("authorization") === "Bearer h" ? 1 : 2 };
        throw status(Code.FailedPrecondition, "BUDGET_EXCEEDED", { desc: BudgetExceededSchema, value }, {}, NAMED);
      },
    });
    router.service(PassageService, {
      importPassages: async (requests) => {
        let storedCount = 0;
        for await (const _ of requests) {
          storedCount += 1;
        }
        return { storedCount };
      },
    });
  });

  const lines = await played(fake.address, [
    {
      as: "host",
      call: "SessionService.OpenSession",
      request: { taint: "CLASSIFICATION_PUBLIC" },
      save: { token: "token" },
    },
    { as: variable("token"), call: "NoteService.AddNote", request: { content: "n" } },
    { as: "none", call: "NoteService.AddNote", request: {} },
    { as: variable("token"), call: "PassageService.ImportPassages", requests: [{}, {}] },
    { as: variable("nobody"), call: "NoteService.AddNote", request: {} },
  ]);

  const refused = (overByChars: number, step: number) =>
    `{"details":[{"@type":"type.googleapis.com/muniment.v1.BudgetExceeded","overByChars":${overByChars}}],` +
    `"message":"a text","reason":"BUDGET_EXCEEDED","request_id":"r1","scenario":"s","status":"FAILED_PRECONDITION","step":${step}}`;
  assert.deepEqual(lines, [
    '{"response":{"session":{"createTime":"1970-01-01T00:00:01.500Z","taint":"CLASSIFICATION_PUBLIC"},"token":"h"},' +
      '"scenario":"s","status":"OK","step":0}',
    refused(1, 1),
    refused(2, 2),
    '{"response":{"storedCount":2},"scenario":"s","status":"OK","step":3}',
    '{"scenario":"s","status":"UNRESOLVED","step":4}',
  ]);
});

test("without a server the runner fails", async () => {
  const steps = [{ as: "host", call: "AgentService.ListAgents", deadline_ms: 2_000 }];
  await assert.rejects(played("127.0.0.1:1", steps), { code: 2 });
});
