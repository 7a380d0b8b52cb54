import assert from "node:assert/strict";
import { test } from "node:test";
import { type BaseStore, InMemoryStore, type Item } from "@langchain/langgraph-checkpoint";
import { remember } from "../../examples/langgraph.js";
import { Classification, MunimentError } from "../../src/index.js";
import { MunimentStore } from "../../src/langgraph.js";
import { host, someone } from "./server.js";

const { PUBLIC, CONFIDENTIAL } = Classification;
const WHERE = ["users", "42"];
const ODD = ["a b", "%", "a/b", " ", "é", "e\u0301", "\u202e", "😀", "a\n", "中文", "x".repeat(70), "-_~!"];

/** An answer without times, in an order that does not depend on the store. */
function plain(answer: unknown): unknown {
  if (Array.isArray(answer) && answer.some((each) => each !== null && typeof each === "object" && "value" in each)) {
    return answer.map(plain).sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  }
  if (answer !== null && typeof answer === "object" && "value" in answer) {
    const { namespace, key, value } = answer as Item;
    return { namespace, key, value };
  }
  return answer;
}

const SCRIPT: ((store: BaseStore) => Promise<unknown>)[] = [
  (store) => store.get(WHERE, "theme"),
  (store) => store.put(WHERE, "theme", { dark: true, n: 1, nested: { a: [1, null] } }),
  (store) => store.put(WHERE, "food", { dark: false, n: 10 }),
  (store) => store.put(["users"], "all", { n: "many" }),
  (store) => store.put(["users2"], "theme", { n: 3 }),
  (store) => store.put(["users", "42", "deep", "er"], "theme", {}),
  (store) => store.get(WHERE, "theme"),
  (store) => store.search(["users"]),
  (store) => store.search([]),
  (store) => store.search(["none"]),
  (store) => store.search(["users"], { filter: { n: { $gt: 1 } } }),
  (store) => store.search(["users"], { filter: { n: { $gte: 1, $lt: 10 } } }),
  (store) => store.search(["users"], { filter: { n: { $in: [1, "many"] } } }),
  (store) => store.search([], { filter: { dark: true } }),
  (store) => store.search([], { filter: { dark: { $ne: true }, n: { $nin: [3] } } }),
  (store) => store.listNamespaces(),
  (store) => store.listNamespaces({ prefix: ["users"] }),
  (store) => store.listNamespaces({ prefix: ["*", "42"] }),
  (store) => store.listNamespaces({ suffix: ["er"] }),
  (store) => store.listNamespaces({ maxDepth: 1 }),
  (store) => store.listNamespaces({ maxDepth: 2, offset: 1, limit: 1 }),
  (store) => store.put(WHERE, "theme", { dark: null }),
  (store) => store.get(WHERE, "theme"),
  (store) => store.delete(WHERE, "food"),
  (store) => store.delete(WHERE, "food"),
  (store) => store.search(WHERE),
  ...ODD.map((name) => (store: BaseStore) => store.put([name, "odd"], name, { name })),
  ...ODD.map((name) => (store: BaseStore) => store.get([name, "odd"], name)),
  (store) => store.search([], { limit: 50 }),
];

for (const taint of [PUBLIC, CONFIDENTIAL]) {
  test(`it answers like LangGraph's own store at ${Classification[taint]}`, async () => {
    const [ours, theirs] = [new MunimentStore(await (await someone())(taint)), new InMemoryStore()];
    for (const [number, call] of SCRIPT.entries()) {
      assert.deepEqual(plain(await call(ours)), plain(await call(theirs)), String(number));
    }
  });
}

test("the items are those of the store in Python", async () => {
  const session = await (await someone())(PUBLIC);
  const store = new MunimentStore(session);
  await store.put(WHERE, "theme", { text: "dark" });
  await store.put(["a/b", "😀"], "c.d", { n: 1 });
  const { memories } = await session.memories.listMemories({});
  assert.deepEqual(
    memories.map(({ key, content, tags }) => [key, content, tags]),
    [
      [
        "muniment:langgraph/a%2Fb.%F0%9F%98%80/c%2Ed",
        '{"n":1}',
        ["muniment:langgraph", "muniment:langgraph:a%2Fb", "muniment:langgraph:a%2Fb.%F0%9F%98%80"],
      ],
      [
        "muniment:langgraph/users.42/theme",
        '{"text":"dark"}',
        ["muniment:langgraph", "muniment:langgraph:users", "muniment:langgraph:users.42"],
      ],
    ],
  );
});

test("at two taints", async () => {
  const opened = await someone();
  const session = await opened(PUBLIC);
  const [low, high] = [new MunimentStore(session), new MunimentStore(await opened(CONFIDENTIAL))];
  await low.put(WHERE, "plan", { n: 1 });
  await high.put(WHERE, "plan", { n: 2 });
  await high.put(["secret"], "salary", { n: 3 });

  assert.equal((await low.get(WHERE, "plan"))?.value.n, 1);
  assert.equal((await high.get(WHERE, "plan"))?.value.n, 2);
  assert.deepEqual([await low.get(["secret"], "salary"), await low.search([], { query: "salary" })], [null, []]);
  assert.deepEqual(await low.listNamespaces(), [WHERE]);
  await high.delete(WHERE, "plan");
  assert.equal((await high.get(WHERE, "plan"))?.value.n, 1);
  const refused = (error: unknown) => error instanceof MunimentError && error.reason === "WRITE_LEVEL_MISMATCH";
  await assert.rejects(high.delete(WHERE, "plan"), refused);
  await host.sessions.raiseTaint({ sessionId: session.info.sessionId, taint: CONFIDENTIAL, reason: "payroll" });
  await low.put(WHERE, "plan", { n: 4 });
  assert.equal((await high.get(WHERE, "plan"))?.value.n, 4);
});

test("batches, searches, and what is refused", async () => {
  const store = new MunimentStore(await (await someone())(PUBLIC));
  await store.batch(
    Array.from({ length: 150 }, (_, number) => ({ namespace: ["m"], key: `${number}`, value: { a: 1 } })),
  );
  assert.equal((await store.search(["m"], { limit: 200 })).length, 150);
  const long = [
    { namespace: ["n"], key: "a", value: { a: "x" } },
    { namespace: ["n"], key: "b".repeat(250), value: { a: "x" } },
  ];
  await assert.rejects(store.batch(long), MunimentError);
  assert.deepEqual(await store.search(["n"]), []);
  await assert.rejects(store.put(["n"], "a", { a: 1 }, ["a"]), /index is not supported/);
  await assert.rejects(store.put([], "a", { a: 1 }), /[Nn]amespace/);
  await assert.rejects(store.put(["n"], "\ud800", { a: 1 }), /surrogate/);
  await store.put(["n"], "a", { a: { toString: 1 }, tags: ["x"] });
  const items = await store.search(["n"], { filter: { a: { toString: 1 }, tags: ["x"] } });
  assert.deepEqual(
    items.map(({ key }) => key),
    ["a"],
  );
});

test("the example of LangGraph", async () => {
  assert.deepEqual(await remember(await (await someone())(PUBLIC)), ["theme"]);
});

test("it shows other memories under a namespace that the caller names, and who stored them", async () => {
  const openedAt = await someone();
  const session = await openedAt(CONFIDENTIAL);
  const [others, files, unseen] = [["others"], "muniment:files/trips/graz.md", new MunimentStore(session)];
  await session.memories.saveMemories({
    memories: [
      { key: "fact/tea", content: "She likes tea." },
      { key: files, content: "A house of tea." },
    ],
  });
  await unseen.put(WHERE, "drinks", { text: "tea in the morning" });
  const store = new MunimentStore(session, { others });
  for (const query of ["tea", undefined]) {
    const found = await store.search([], query === undefined ? {} : { query });
    assert.deepEqual(found.map(({ namespace, key, value }) => [...namespace, key, value.source]).sort(), [
      ["others", "fact/tea", "memory"],
      ["others", files, "files"],
      [...WHERE, "drinks", undefined],
    ]);
    assert.deepEqual((await store.search(others, query === undefined ? {} : { query })).length, 2);
    assert.deepEqual((await unseen.search([], query === undefined ? {} : { query })).length, 1);
  }
  assert.deepEqual((await store.get(others, "fact/tea"))?.value, { content: "She likes tea.", source: "memory" });
  assert.equal(await store.get(others, "muniment:langgraph/users.42/drinks"), null);
  assert.deepEqual(await store.listNamespaces(), [others, WHERE]);
  await assert.rejects(store.put(others, "fact/tea", {}), /only be read/);
  await assert.rejects(store.delete([...others, "below"], "x"), /only be read/);
  assert.deepEqual(await new MunimentStore(await openedAt(PUBLIC), { others }).search([]), []);
  assert.throws(() => new MunimentStore(session, { others: [] }), /namespace of its own/);
});
