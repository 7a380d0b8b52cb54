import assert from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { betaMemoryTool, type MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import { BetaLocalFilesystemMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";
import { type MemoryCommand, MunimentMemoryTool } from "../../src/anthropic.js";
import { Classification, Integrity } from "../../src/index.js";
import { someone } from "./server.js";

const { PUBLIC, CONFIDENTIAL } = Classification;
const A = "/memories/a.md";

/** What the model reads. */
async function answer(handlers: MemoryToolHandlers, command: MemoryCommand): Promise<string> {
  try {
    return String(await betaMemoryTool(handlers).run(command));
  } catch (error) {
    return `Error: ${(error as Error).message}`;
  }
}

/** The size of a directory is that of the files in it, not what a file system says. */
function withoutSizes(text: string): string {
  return text.replace(/(?<=node_modules:\n)\S+(?=\t)|^\S+(?=\t\S+\/$)/gm, "SIZE");
}

const SCRIPT: MemoryCommand[] = [
  { command: "view", path: "/memories" },
  { command: "view", path: A },
  { command: "create", path: A, file_text: "one\ntwo\nthree\nfour\nfive\nsix\n" },
  { command: "create", path: A, file_text: "other" },
  { command: "view", path: A },
  { command: "view", path: A, view_range: [2, 4] },
  { command: "view", path: A, view_range: [5, -1] },
  { command: "view", path: A, view_range: [0, 2] },
  { command: "str_replace", path: A, old_str: "four", new_str: "4\n$&" },
  { command: "str_replace", path: A, old_str: "seven", new_str: "7" },
  { command: "str_replace", path: A, old_str: "t", new_str: "T" },
  { command: "str_replace", path: "/memories/none", old_str: "a", new_str: "b" },
  { command: "insert", path: A, insert_line: 0, insert_text: "zero\n" },
  { command: "insert", path: A, insert_line: 3, insert_text: "in between" },
  { command: "insert", path: "/memories/none", insert_line: 0, insert_text: "x" },
  { command: "view", path: A },
  { command: "create", path: "/memories/empty", file_text: "" },
  { command: "view", path: "/memories/empty" },
  { command: "create", path: "/memories/d/e/f/deep.md", file_text: "x".repeat(1536) },
  { command: "create", path: "/memories/d/b.md", file_text: "x".repeat(2048) },
  { command: "create", path: "/memories/d-1/b.md", file_text: "x".repeat(1023) },
  { command: "create", path: "/memories/.hidden/b.md", file_text: "x" },
  { command: "create", path: "/memories/node_modules/b.md", file_text: "x" },
  { command: "view", path: "/memories" },
  { command: "view", path: "/memories/d" },
  { command: "create", path: "/memories/d", file_text: "x" },
  { command: "str_replace", path: "/memories/d", old_str: "a", new_str: "b" },
  { command: "insert", path: "/memories/d", insert_line: 0, insert_text: "x" },
  { command: "rename", old_path: A, new_path: "/memories/d" },
  { command: "rename", old_path: "/memories/none", new_path: "/memories/other" },
  { command: "rename", old_path: "/memories", new_path: "/memories/other" },
  { command: "rename", old_path: A, new_path: "/memories/new/place/a.md" },
  { command: "rename", old_path: "/memories/d", new_path: "/memories/new/d" },
  { command: "view", path: "/memories/new" },
  { command: "delete", path: "/memories" },
  { command: "delete", path: "/memories/none" },
  { command: "delete", path: "/memories/new/d" },
  { command: "view", path: "/memories/new/d" },
  { command: "view", path: "/memories/../etc/passwd" },
  { command: "create", path: "/etc/passwd", file_text: "x" },
];

for (const taint of [PUBLIC, CONFIDENTIAL]) {
  test(`it answers like Anthropic's own tool at ${Classification[taint]}`, async () => {
    const theirs = await BetaLocalFilesystemMemoryTool.init(await mkdtemp(join(tmpdir(), "memory-")));
    const session = await (await someone())(taint);
    const ours = new MunimentMemoryTool(session);
    for (const command of SCRIPT) {
      const said = withoutSizes(await answer(ours, command));
      assert.equal(said, withoutSizes(await answer(theirs, command)), JSON.stringify(command));
    }
  });
}

test("at two taints", async () => {
  const opened = await someone();
  const low = new MunimentMemoryTool(await opened(PUBLIC));
  const high = new MunimentMemoryTool(await opened(CONFIDENTIAL));
  await low.execute({ command: "create", path: A, file_text: "one\n" });
  await high.execute({ command: "create", path: "/memories/pay/salary", file_text: "52,000" });

  const absent = "Error: The path /memories/pay/salary does not exist. Please provide a valid path.";
  assert.equal(await answer(low, { command: "view", path: "/memories/pay/salary" }), absent);
  assert.equal(
    await answer(high, { command: "delete", path: A }),
    `Error: ${A} cannot be deleted from this conversation, because it was written at a lower classification. It stays ` +
      "readable. To change what this conversation sees, edit it: conversations at the lower classification keep their " +
      "version.",
  );
  await high.execute({ command: "str_replace", path: A, old_str: "one", new_str: "two" });
  assert.match(await answer(low, { command: "view", path: A }), /\tone\n/);
  assert.equal(
    await answer(high, { command: "delete", path: A }),
    `Successfully deleted ${A}. An earlier version of ${A}, which was written at a lower classification, is visible again.`,
  );
  assert.match(await answer(high, { command: "view", path: A }), /\tone\n/);
});

test("what is trusted is not deleted by halves", async () => {
  const opened = await someone();
  const trusted = new MunimentMemoryTool(await opened(PUBLIC, Integrity.TRUSTED));
  const untrusted = new MunimentMemoryTool(await opened(PUBLIC));
  await trusted.execute({ command: "create", path: "/memories/d/trusted", file_text: "one" });
  await untrusted.execute({ command: "create", path: "/memories/d/own", file_text: "two" });

  assert.match(await answer(untrusted, { command: "delete", path: "/memories/d" }), /d\/trusted cannot be deleted/);
  assert.match(await answer(untrusted, { command: "view", path: "/memories/d/own" }), /two/);
});

test("slashes in a path take no time", async () => {
  const tool = new MunimentMemoryTool(await (await someone())(PUBLIC));
  await tool.create({ command: "create", path: "/memories/d/a.md", file_text: "x" });
  const path = `/memories${"/".repeat(100_000)}d`;
  const started = process.cpuUsage().user;
  assert.match(await tool.view({ command: "view", path }), /\/d\/a\.md$/);
  assert.ok(process.cpuUsage().user - started < 1_000_000);
});

test("a parameter that is no text changes nothing", async () => {
  const tool = new MunimentMemoryTool(await (await someone())(PUBLIC));
  await tool.create({ command: "create", path: A, file_text: "undefined" });
  for (const command of [
    { command: "str_replace", path: A, new_str: "x" },
    { command: "str_replace", path: A, old_str: ["undefined"], new_str: "x" },
    { command: "str_replace", path: A, old_str: "undefined", new_str: ["x"] },
    { command: "insert", path: A, insert_line: 0, insert_text: ["x"] },
    { command: "insert", path: A, insert_line: 0 },
    { command: "create", path: "/memories/b" },
    { command: "view", path: 5 },
    { command: "delete" },
  ]) {
    await assert.rejects(tool.execute(command as MemoryCommand), /parameter: it must be a string$/);
  }
  for (const range of [
    ["one", 2],
    [1.5, 2],
  ]) {
    const command = { command: "view", path: A, view_range: range } as MemoryCommand;
    await assert.rejects(tool.execute(command), /`view_range` parameter: it must be two integers$/);
  }
  assert.match(await tool.view({ command: "view", path: A }), /1\tundefined$/);
});
