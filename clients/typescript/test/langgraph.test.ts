import assert from "node:assert/strict";
import { test } from "node:test";
import { type BaseStore, InMemoryStore, type Operation } from "@langchain/langgraph-checkpoint";
import { FileView } from "../src/files.js";
import { connect, MemoryService } from "../src/index.js";
import { MunimentStore } from "../src/langgraph.js";
import { MunimentSession } from "../src/openai-agents.js";
import { Fake } from "./fake.js";

/** A server that holds memories, and lists them all. */
function served(): Promise<Fake> {
  const held = new Map<string, { key: string; content: string; tags: string[] }>();
  return Fake.start((router) =>
    router.service(MemoryService, {
      saveMemories: ({ memories }) => {
        for (const { key, content, tags } of memories) {
          held.set(key, { key, content, tags });
        }
        return {};
      },
      getMemory: ({ key }) => ({ memory: held.get(key) ?? {} }),
      listMemories: () => ({ memories: [...held.values()] }),
    }),
  );
}

/** A test with an empty store. */
function withStore(name: string, body: (store: BaseStore) => Promise<void>): void {
  test(name, async () => {
    await using fake = await served();
    await body(new MunimentStore(connect({ address: fake.address, token: "t" })));
  });
}

/** The keys of those *values* of the field `n` that a filter finds. A value that is undefined is missing. */
async function found(store: BaseStore, values: Record<string, unknown>, wanted: unknown): Promise<string> {
  const puts = Object.entries(values).map(([key, n]) => ({ namespace: ["here"], key, value: { n } }));
  await store.batch(puts);
  const items = await store.search(["here"], { filter: { n: wanted }, limit: 100 });
  return items.map(({ key }) => key).join("");
}

const VALUES = { a: 1, b: true, c: "1", d: null, e: undefined, f: "", g: 31, h: "31", i: "dark", j: -0, k: 4.99 };

for (const wanted of [
  1,
  true,
  "dark",
  null,
  0,
  { $eq: "1" },
  { $ne: null },
  { $gt: 4.99 },
  { $gte: 31 },
  { $gt: "4.99" },
  { $gt: 0, $lte: 31 },
  { $lt: Number.POSITIVE_INFINITY, $gt: 1 },
  { $in: [1, "dark", null] },
  { $nin: [1, "dark", null] },
]) {
  withStore(`the filter ${JSON.stringify(wanted)} finds what it finds in LangGraph's own store`, async (store) => {
    assert.equal(await found(store, VALUES, wanted), await found(new InMemoryStore(), VALUES, wanted));
  });
}

const NESTED = {
  a: ["x", "y"],
  b: ["y", "x"],
  c: ["x"],
  d: { x: 1, y: 2 },
  e: { y: 2, x: 1 },
  f: { x: 1 },
  g: { by: { who: "Ada", n: 5 } },
  h: { by: { who: "Bob", n: 15 } },
  i: "x",
  j: [{ x: 1, y: 2 }],
  k: { 0: "x", 1: "y" },
};

for (const [wanted, keys] of [
  [["x", "y"], "a"],
  [["x"], "c"],
  [{ $eq: ["x", "y"] }, "a"],
  [{ $ne: ["x", "y"] }, "bcdefghijk"],
  [{ $in: [["x"], { x: 1 }] }, "cf"],
  [{ $nin: [["x"], { x: 1 }] }, "abdeghijk"],
  [{ $eq: { x: 1, y: 2 } }, "de"],
  [{ $eq: { x: 1, y: undefined } }, "f"],
  [{ x: 1 }, "def"],
  [{ by: { who: "Ada" } }, "g"],
  [{ by: { n: { $lt: 20 } } }, "gh"],
  [{ by: { who: "Ada", n: 15 } }, ""],
  [[{ x: 1 }], "j"],
  [JSON.parse('{ "__proto__": {} }'), ""],
  [{}, "defghk"],
] as const) {
  withStore(`the filter ${JSON.stringify(wanted)} looks into arrays and objects`, async (store) => {
    assert.equal(await found(store, NESTED, wanted), keys);
  });
}

withStore("null and what has no digits are not 0 to a filter", async (store) => {
  assert.equal(await found(store, { ...VALUES, l: [], m: [5], n: " " }, { $lt: 9 }), "abcjk");
});

withStore("a date is found by that date", async (store) => {
  assert.equal(await found(store, { a: new Date(0), b: new Date(1), c: {} }, new Date(0)), "a");
});

for (const [name, wanted] of Object.entries({
  "a comparison with a date": { $gt: "2026-11-11" },
  "a comparison with null": { $lt: null },
  "a comparison with an array": { $lt: [5] },
  "a comparison with NaN": { $lt: Number.NaN },
  "an unknown operator": { $regex: "1" },
  "an unknown operator beside another": { $gt: 0, $exists: true },
  "an operator in other letters": { $GT: 0 },
  "an operator beside a field": { $gt: 0, who: "Ada" },
  "an operator that every object has": { $eq: 1, toString: 1 },
  "$in without an array": { $in: "dark" },
  "$nin without an array": { $nin: "dark" },
  undefined: undefined,
  "undefined within an object": { who: undefined },
  NaN: Number.NaN,
  "a Map": new Map([["x", 1]]),
})) {
  withStore(`${name} is refused in a filter, also by an empty store`, async (store) => {
    await assert.rejects(store.search([], { filter: { n: wanted } }), TypeError);
  });
}

withStore("what JSON has is put", async (store) => {
  const value = { a: [1, -0.5, "", null, true, { "": {} }], b: Object.create(null), at: new Date(0), none: undefined };
  await store.put(["here"], "k", value);

  const item = await store.get(["here"], "k");
  assert.deepEqual(item?.value, { a: [1, -0.5, "", null, true, { "": {} }], b: {}, at: "1970-01-01T00:00:00.000Z" });
});

for (const [name, value] of Object.entries({
  NaN: { a: [Number.NaN] },
  infinity: { a: { b: Number.NEGATIVE_INFINITY } },
  "undefined in an array": { a: [1, undefined] },
  "a hole in an array": { a: new Array(1) },
  "a function": { a: () => 1 },
  "a symbol": { a: Symbol("a") },
  "a bigint": { a: 1n },
  "a Map": { a: new Map([["x", 1]]) },
  "a promise": { a: Promise.resolve("dark") },
  "an error": { a: new Error("dark") },
  "a date that is none": { a: new Date(Number.NaN) },
  "an array": ["dark"],
  "a text": "dark" as unknown as object,
  "no value": undefined as unknown as object,
})) {
  withStore(`${name} is not put, nor is the rest of its batch`, async (store) => {
    const puts = [
      { namespace: ["here"], key: "before", value: { a: 1 } },
      { namespace: ["here"], key: "k", value },
    ];
    await assert.rejects(store.batch(puts), TypeError);
    assert.deepEqual(await store.search([]), []);
  });
}

for (const page of [
  { limit: -1 },
  { offset: -1 },
  { limit: Number.NaN },
  { offset: Number.NaN },
  { limit: "5" as never },
]) {
  withStore(`a page with ${Object.entries(page)} is refused`, async (store) => {
    await assert.rejects(store.search([], page), RangeError);
    await assert.rejects(store.listNamespaces(page), RangeError);
  });
}

withStore("a negative depth is refused", async (store) => {
  await assert.rejects(store.listNamespaces({ maxDepth: -1 }), RangeError);
});

withStore("a page without a limit has ten items, or all namespaces", async (store) => {
  await store.batch(Array.from({ length: 12 }, (_, n) => ({ namespace: [`${n}`], key: "k", value: {} })));

  const [items, namespaces] = await store.batch([{ namespacePrefix: [] }, { matchConditions: [] } as never]);
  assert.deepEqual([(items as unknown[]).length, (namespaces as unknown[]).length], [10, 12]);
  assert.equal((await store.search([], { limit: Number.POSITIVE_INFINITY })).length, 12);
});

withStore("a condition on namespaces that is neither prefix nor suffix is refused", async (store) => {
  const list = { matchConditions: [{ matchType: "infix", path: ["a"] }], limit: 10, offset: 0 };
  await assert.rejects(store.batch([list as Operation]), /prefix or suffix/);
});

test("an adapter refuses what is no open session when it is made", async () => {
  const host = connect({ address: "127.0.0.1:1", hostKey: "k" });
  for (const wrong of [host, Promise.resolve(), undefined] as never[]) {
    for (const make of [
      () => new MunimentStore(wrong),
      () => new FileView(wrong),
      () => new MunimentSession("one", wrong),
    ]) {
      assert.throws(make, /await host\.openSession/);
    }
  }
});
