import assert from "node:assert/strict";
import { test } from "node:test";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type FileProblem, FileView, isProblem, matches, normalized } from "../../src/files.js";
import { Classification } from "../../src/index.js";
import { host, someone } from "./server.js";

const { PUBLIC, CONFIDENTIAL } = Classification;

async function views(...taints: Classification[]): Promise<FileView[]> {
  const opened = await someone();
  return Promise.all(taints.map(async (taint) => new FileView(await opened(taint))));
}

async function tree(view: FileView): Promise<Record<string, string>> {
  return Object.fromEntries((await view.walk()).map(({ path, content }) => [path, content]));
}

function refused(call: Promise<unknown>, problem: FileProblem): Promise<void> {
  return assert.rejects(call, (error) => isProblem(error, problem));
}

test("a file is a memory with the same content", async () => {
  const session = await (await someone())(PUBLIC);
  const written = await new FileView(session).write("/trips/./graz.md", "by bus\n");
  const { memory } = await session.memories.getMemory({ key: "muniment:files/trips/graz.md" });
  assert.deepEqual([memory?.content, memory?.etag, memory?.tags], ["by bus\n", written.etag, []]);
  assert.deepEqual(await new FileView(session).read("trips/graz.md"), written);
});

test("a memory whose key is another path to a file is no file", async () => {
  for (const key of [
    "muniment:files/a/../b",
    "muniment:files/a/./c",
    "muniment:files/a//c",
    "muniment:files/a/c/",
    "muniment:files//b",
    "muniment:files/../b",
    "muniment:files/",
  ]) {
    const opened = await someone();
    const session = await opened(CONFIDENTIAL);
    await (await opened(PUBLIC)).memories.saveMemory({ key, content: "planted" });
    const view = new FileView(session);
    await view.write("a/c", "new");
    await view.write("b", "new");

    assert.deepEqual(await tree(view), { "a/c": "new", b: "new" }, key);
    assert.deepEqual(await view.grep("planted"), []);
    await view.delete("a");
    await view.delete("b");
    const { memories } = await session.memories.listMemories({});
    assert.deepEqual(
      memories.map((memory) => memory.key),
      [key],
    );
  }
});

test("content comes back as it was", async () => {
  const [view] = await views(PUBLIC);
  for (const content of ["", "\n", "a\r\nb", "x".repeat(131_072), "é".repeat(65_536)]) {
    assert.equal((await view?.write("a", content))?.content, content);
    assert.deepEqual(await view?.ls(), [{ path: "a", isDirectory: false, size: Buffer.byteLength(content) }]);
  }
  for (const content of ["x".repeat(131_073), "a\0", "\ud800"]) {
    await refused(view?.write("a", content) ?? Promise.resolve(), "InvalidContent");
  }
});

test("files above the taint do not exist, and a write shadows what is below", async () => {
  const [low, high] = (await views(PUBLIC, CONFIDENTIAL)) as [FileView, FileView];
  await low.write("a/plan", "low");
  await high.replace("a/plan", "low", "$& high");
  await high.write("b/salary", "52,000");

  assert.deepEqual(await tree(low), { "a/plan": "low" });
  assert.deepEqual(await tree(high), { "a/plan": "$& high", "b/salary": "52,000" });
  await refused(low.ls("b"), "NoSuchFile");
  await refused(low.read("b/salary"), "NoSuchFile");
  await low.create("b/salary", "none");
});

test("a create does not replace, and a change is made to the version that was read", async () => {
  const [low, high] = (await views(PUBLIC, CONFIDENTIAL)) as [FileView, FileView];
  const first = await low.create("plan", "one");
  await refused(low.create("plan", "two"), "FileExists");
  await refused(high.create("plan", "two"), "FileExists");
  await low.write("plan", "two", { etag: first.etag });
  await refused(low.write("plan", "three", { etag: first.etag }), "FileChanged");
});

test("what is lower is neither deleted nor renamed, and what is uncovered is said", async () => {
  const [low, high] = (await views(PUBLIC, CONFIDENTIAL)) as [FileView, FileView];
  await low.write("d/a", "low");
  await refused(high.delete("d/a"), "LowerFile");
  await refused(high.rename("d", "e"), "LowerFile");
  await high.write("d/a", "high");
  await high.write("d/b", "high");

  assert.deepEqual(await high.rename("d", "e/f"), ["d/a"]);
  assert.deepEqual(await tree(high), { "d/a": "low", "e/f/a": "high", "e/f/b": "high" });
  await refused(high.delete("d"), "LowerFile");
  assert.deepEqual(await high.delete("e"), []);
  assert.deepEqual(await tree(high), { "d/a": "low" });
});

test("a raised taint is that of the next write", async () => {
  const opened = await someone();
  const session = await opened(PUBLIC);
  const [mine, low] = [new FileView(session), new FileView(await opened(PUBLIC))];
  await mine.write("a", "one");
  await host.sessions.raiseTaint({ sessionId: session.info.sessionId, taint: CONFIDENTIAL, reason: "payroll" });
  await mine.insert("a", 1, "two");
  assert.deepEqual([(await low.read("a")).content, (await mine.read("a")).content], ["one", "one\ntwo\n"]);
});

test("an edit keeps tags and expiry", async () => {
  const session = await (await someone())(PUBLIC);
  const expireTime = timestampFromDate(new Date(Date.now() + 3_600_000));
  await session.memories.saveMemory({ key: "muniment:files/a", content: "one", tags: ["tea"], expireTime });
  const view = new FileView(session);
  const { file } = await view.replace("a", "one", "");
  assert.deepEqual([file.content, file.tags, file.expireTime], ["", ["tea"], expireTime]);
  const edited = await view.insert("a", 0, "two");
  assert.deepEqual([edited.content, edited.tags, edited.expireTime], ["two\n", ["tea"], expireTime]);
  assert.equal((await view.write("a", "three")).expireTime, undefined);
});

test("a text that occurs very often is refused with a short list at once", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  await view.write("a", "\n".repeat(131_072));
  const started = process.cpuUsage().user;
  await assert.rejects(view.replace("a", "\n", ""), { lines: Array.from({ length: 100 }, (_, line) => line + 1) });
  assert.ok(process.cpuUsage().user - started < 1_000_000);
});

test("line breaks that a text ends with take no time", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  await view.write("a", "one\n");
  const text = `${"\n".repeat(100_000)}two`;
  const started = process.cpuUsage().user;
  assert.equal((await view.insert("a", 0, `${text}\n\n`)).content, `${text}\none\n`);
  assert.ok(process.cpuUsage().user - started < 1_000_000);
});

test("edits name what is wrong", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  await view.write("a", "one\ntwo\none\n");
  await refused(view.replace("a", "three", ""), "NoSuchText");
  await refused(view.replace("a", "one", ""), "AmbiguousText");
  await refused(view.insert("a", 4, "x"), "NoSuchLine");
  await refused(view.rename("a", "a"), "FileExists");
  await refused(view.rename("a", "a/b"), "InvalidPath");
  await refused(view.rename("none", "b"), "NoSuchFile");
  await view.create(`long/${"x".repeat(150)}`, "x");
  await assert.rejects(view.rename("long", "y".repeat(100)), {
    message: /^y{100}\/x+ is no possible path: it is too long\. Nothing was renamed\.$/,
  });
  await refused(view.write("../a", "x"), "InvalidPath");
  await refused(view.write("/", "x"), "InvalidPath");
  await refused(view.read("a\nb"), "InvalidPath");
  assert.deepEqual((await view.replace("a", "two\n", "2")).line, 2);
});

test("an error says how many files were changed before it", async () => {
  const session = await (await someone())(PUBLIC);
  const [view, other] = [new FileView(session), new FileView(session)];
  for (const path of ["d/a", "d/b", "d/c", "d/x"]) {
    await view.create(path, "x");
  }
  const { getSession } = session.sessions;
  let change = "d/b";
  session.sessions.getSession = async (request, options) => {
    await other.write(change, `${change} changed`); // After its etag was read.
    return getSession(request, options);
  };
  const said = (done: string) => ({ message: new RegExp(`1 of [34] files were ${done} before that, and stay so\\.$`) });
  await assert.rejects(view.rename("d", "e"), said("renamed"));
  change = "d/c";
  await assert.rejects(view.delete("d"), said("deleted"));
  assert.deepEqual(Object.keys(await tree(view)), ["d/c", "d/x", "e/a"]);
});

test("a file with the most tags cannot be empty", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  await view.write("a", "x", { tags: Array.from({ length: 32 }, (_, number) => `${number}`) });
  await refused(view.replace("a", "x", ""), "InvalidContent");
  assert.equal((await view.read("a")).content, "x");
});

test("directories, patterns and texts", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  for (const path of ["a/b/c.md", "a/d.txt", "a-b/e.md", "f.md"]) {
    await view.write(path, "tea\na .*");
  }
  assert.deepEqual(
    (await view.ls("", 2)).map(({ path, isDirectory, size }) => [path, isDirectory, size]),
    [
      ["a", true, 16],
      ["a/b", true, 8],
      ["a/d.txt", false, 8],
      ["a-b", true, 8],
      ["a-b/e.md", false, 8],
      ["f.md", false, 8],
    ],
  );
  assert.deepEqual(await view.glob("**/*.md"), ["a-b/e.md", "a/b/c.md", "f.md"]);
  assert.deepEqual(await view.grep(".*", "a/*"), [{ path: "a/d.txt", line: 2, text: "a .*" }]);
  assert.deepEqual(await view.grep("te.", "a/*"), []);
});

test("paths and patterns", () => {
  assert.equal(normalized("/cafe\u0301//b/../c/"), "caf\u00e9/c");
  assert.ok(matches("/b/**", "b/d/e.md") && matches("?.md", "é.md") && matches("**/a.md", "a.md"));
  assert.ok(!matches("*.md", "b/c.md") && !matches("b?c", "b/c") && !matches("[a]", "a"));
  assert.ok(!matches(`${"*a".repeat(2_000)}b`, "a".repeat(250)));
  const started = process.cpuUsage().user;
  assert.ok(matches("*?".repeat(200), "a".repeat(1_000)));
  assert.ok(process.cpuUsage().user - started < 500_000);
});

test("a pattern is no longer than a path", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  await view.write("a", "x");
  const pattern = `${"**/".repeat(85)}a`;
  assert.deepEqual(await view.glob(pattern), ["a"]);
  assert.equal((await view.grep("x", pattern)).length, 1);
  await refused(view.glob(`${pattern}?`), "InvalidPath");
  await refused(view.grep("x", `${pattern}?`), "InvalidPath");
});

test("only the directory that a pattern names is read", async () => {
  const session = await (await someone())(PUBLIC);
  const { listMemories } = session.memories;
  const read: unknown[] = [];
  session.memories.listMemories = (request, options) => {
    read.push(request.keyPrefix);
    return listMemories(request, options);
  };
  for (const pattern of ["a/b/*.md", "/a/b?/c", "a/b", "*/b", "b"]) {
    await new FileView(session).glob(pattern);
  }
  assert.deepEqual(read, [
    "muniment:files/a/b/",
    "muniment:files/a/",
    "muniment:files/a/",
    "muniment:files/",
    "muniment:files/",
  ]);
});

test("a list is in the order of keys, also beyond the first plane of Unicode", async () => {
  const [view] = (await views(PUBLIC)) as [FileView];
  for (const path of ["\u{1f600}", "\uff21", "a"]) {
    await view.write(path, "x");
  }
  const paths = (await view.walk()).map((file) => file.path);
  assert.deepEqual(paths, ["a", "\uff21", "\u{1f600}"]);
  assert.deepEqual(
    (await view.ls()).map((entry) => entry.path),
    paths,
  );
});

test("a root is apart from others, and not below one", async () => {
  const session = await (await someone())(PUBLIC);
  await new FileView(session, { root: "team" }).write("plan", "x");

  assert.equal((await session.memories.getMemory({ key: "muniment:files:team/plan" })).memory?.content, "x");
  assert.deepEqual(await new FileView(session).walk(), []);
  for (const root of ["team/notes", ""]) {
    assert.throws(() => new FileView(session, { root }), /a name without a slash/);
  }
});
