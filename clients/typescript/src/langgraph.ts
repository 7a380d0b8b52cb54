/**
 * A store for LangGraph.js's long-term memory: a `BaseStore` of `@langchain/langgraph-checkpoint`.
 *
 * An item is a keyed memory of the session's agent: its key is the namespace and the key
 * (`muniment:langgraph/users.42/theme` for `["users", "42"]` and `"theme"`), its content the value as JSON, its tags the
 * namespace and all its parents. The store of the Python client has the same items. A model cannot save a memory that is
 * an item: `muniment:` is refused to its tools. Other memories of the agent are never changed, and are shown only under
 * a namespace that you name: see {@link StoreOptions}.
 *
 * It does what `BaseStore` documents, and what InMemoryStore does where that is silent, except for this:
 *
 * - Levels apply. Items above the session's taint do not exist. `put` writes at the taint, and so shadows a lower item.
 *   `delete` deletes at the taint: a lower item that was shadowed is visible again, and an item that exists only below
 *   the taint rejects with `WRITE_LEVEL_MISMATCH`.
 * - `search` without a query returns items by namespace and key. With a query, it returns only matches, best first and
 *   with scores, from the 100 best. A score is the relevance of an item, from 0 to 1, or that of the item before it if
 *   that is lower: below 0.3 an item hardly fits. It searches all words of a value, so a `put` with `index` is refused.
 * - A filter compares arrays and objects by what they contain, and looks into objects: `{ by: { who: "Ada" } }`. `$gt`
 *   and its like compare numbers, texts such as "31", and true and false as 1 and 0; null and "" are not 0. If they
 *   compare with anything else, such as a date, the search rejects with TypeError. So it does for undefined, and for
 *   operators other than these and `$eq`, `$ne`, `$in`, `$nin`. As in LangGraph.js, and unlike in Python, a missing
 *   field is not null.
 * - A value that JSON would silently change rejects with TypeError: NaN, a Map, an instance of a class without
 *   `toJSON`, undefined in an array. A Date is put as text, and a field that is undefined is left out. An
 *   integer above 2^53 that the store in Python put is read rounded, as by any `JSON.parse`.
 * - A negative `limit`, `offset` or `maxDepth` rejects with RangeError, and a condition on namespaces that is neither
 *   `prefix` nor `suffix` with TypeError.
 * - What was put is found by its words at once, and by its embedding as soon as the server has made one.
 * - A namespace is listed only while it contains an item.
 * - A batch reads before it writes, and executes only the last of several puts of an item: first the deletions, then the
 *   others, up to 100 and 128 KiB in one transaction.
 * - Namespace (labels joined with dots) and key have at most 236 characters together, and a value 128 KiB. Some
 *   characters are written as `%XX`, which counts as three or more.
 */

import { timestampDate } from "@bufbuild/protobuf/wkt";
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
  validateNamespace,
} from "@langchain/langgraph-checkpoint";
import { batches, type Saved } from "./batches.js";
import { MunimentError } from "./errors.js";
import { filterOf } from "./filters.js";
import type { Memory } from "./gen/muniment/v1/memory_pb.js";
import { jsonOf } from "./json.js";
import { keyOf, pathOf, prefixOf, TAG, tagOf, tagsOf } from "./langgraph-names.js";
import { pages } from "./pages.js";
import { requireSession } from "./require-session.js";
import { sourceOf } from "./reserved.js";
import type { SessionClient } from "./session.js";

const MAX_PAGE_SIZE = 250;
const MAX_RESULTS = 100;
const MAX_QUERY_CHARS = 1024;
const DEFAULT_LIMIT = 10;

/** What a store shows besides its items. */
export interface StoreOptions {
  /**
   * A namespace under which the store also shows memories that are not its items: plain memories, files, and what other
   * adapters have stored. Such an item has the key of the memory; its value has the `content`, and as `source` who
   * stored it, such as `memory` or `files`. It can be found, listed and read; a put there is refused.
   */
  readonly others?: readonly string[];
}

/** A store for one session: the items of its agent, up to the session's taint. It does not close the session. */
export class MunimentStore extends BaseStore {
  readonly #session: SessionClient;
  readonly #others: readonly string[] | undefined;

  constructor(session: SessionClient, { others }: StoreOptions = {}) {
    super();
    if (others?.length === 0) {
      throw new TypeError('others needs a namespace of its own, such as ["others"]');
    }
    requireSession(session);
    this.#session = session;
    this.#others = others;
  }

  /** Execute all reads, then the last write of each item. */
  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    const puts = new Map<string, PutOperation>();
    for (const operation of operations) {
      if ("namespace" in operation) {
        validateNamespace(operation.namespace, { allowReservedRoot: true });
      }
      if ("value" in operation) {
        requireNoIndex(operation);
        this.#requireOwn(operation.namespace);
        puts.set(keyOf(operation.namespace, operation.key), operation);
        results.push(null);
      } else {
        results.push(await this.#read(operation));
      }
    }
    await this.#write(puts);
    return results as OperationResults<Op>;
  }

  #read(operation: GetOperation | SearchOperation | ListNamespacesOperation): Promise<unknown> {
    if ("namespacePrefix" in operation) {
      return this.#search(operation);
    }
    return "key" in operation ? this.#get(operation) : this.#listNamespaces(operation);
  }

  async #get({ namespace, key }: GetOperation): Promise<Item | null> {
    const isOther = this.#others !== undefined && isEqual(namespace, this.#others);
    try {
      const { memory } = await this.#session.memories.getMemory({ key: isOther ? key : keyOf(namespace, key) });
      const item = memory && this.#itemOf(memory);
      return item && isEqual(item.namespace, namespace) ? item : null;
    } catch (error) {
      if (isMissing(error)) {
        return null;
      }
      throw error;
    }
  }

  #requireOwn(namespace: readonly string[]): void {
    if (this.#others !== undefined && begins(namespace, this.#others)) {
      throw new Error("what is under `others` can only be read: save it with the client");
    }
  }

  /** The item that a memory stores. Otherwise the memory itself, if the store shows others. */
  #itemOf(memory: Memory): Item | undefined {
    const item = itemOf(memory);
    if (item !== undefined || this.#others === undefined) {
      return item;
    }
    const { key, content } = memory;
    return { namespace: [...this.#others], key, value: { content, source: sourceOf(key) }, ...timesOf(memory) };
  }

  /** Delete what has no value, and save the rest, once all values are JSON: that may fail. */
  async #write(puts: ReadonlyMap<string, PutOperation>): Promise<void> {
    const [saved, deleted]: [Saved[], string[]] = [[], []];
    for (const [key, { namespace, value }] of puts) {
      if (value === null) {
        deleted.push(key);
      } else {
        saved.push({ key, content: contentOf(value), tags: tagsOf(namespace) });
      }
    }
    for (const key of deleted) {
      try {
        await this.#session.memories.deleteMemory({ key });
      } catch (error) {
        if (!isMissing(error)) {
          throw error; // LangGraph does not report whether there was an item to delete
        }
      }
    }
    for (const memories of batches(saved)) {
      await this.#session.memories.saveMemories({ memories });
    }
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const query = [...(operation.query ?? "").trim()].slice(0, MAX_QUERY_CHARS).join("");
    const prefix = operation.namespacePrefix;
    const { offset = 0, limit = DEFAULT_LIMIT } = operation;
    requireNotNegative({ limit, offset });
    const passes = filterOf(operation.filter ?? {});
    const found = query === "" ? await this.#listed(prefix) : await this.#found(query, prefix);
    return found
      .filter((item) => begins(item.namespace, prefix))
      .filter((item) => passes(item.value))
      .slice(offset, offset + limit);
  }

  async #found(query: string, prefix: string[]): Promise<SearchItem[]> {
    // One search finds both, since ranks of two responses cannot be compared.
    const filter = this.#showsOthers(prefix) ? {} : { tags: [tagOf(prefix)], keyPrefix: prefixOf(prefix) };
    const { results } = await this.#session.memories.searchMemories({ query, ...filter, maxResults: MAX_RESULTS });
    let score = 1;
    return results.flatMap(({ memory, relevance }) => {
      const item = memory && this.#itemOf(memory);
      score = Math.min(score, relevance);
      return item ? [{ ...item, score }] : [];
    });
  }

  async #listed(prefix: string[]): Promise<SearchItem[]> {
    const items = await this.#memories({ tag: tagOf(prefix), keyPrefix: prefixOf(prefix) });
    const others = this.#showsOthers(prefix) ? await this.#memories({}) : [];
    return [
      ...items.flatMap((memory) => itemOf(memory) ?? []),
      ...others.flatMap((memory) => (itemOf(memory) ? [] : (this.#itemOf(memory) ?? []))),
    ];
  }

  async #memories(filter: { tag?: string; keyPrefix?: string }): Promise<Memory[]> {
    const request = { ...filter, pageSize: MAX_PAGE_SIZE };
    const all = await pages(this.#session.memories.listMemories, request).all({ restartOnTaintChange: true });
    return all.flatMap((page) => page.memories);
  }

  #showsOthers(prefix: readonly string[]): boolean {
    return this.#others !== undefined && begins(this.#others, prefix);
  }

  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions: conditions = [], maxDepth, limit = Number.POSITIVE_INFINITY, offset = 0 } = operation;
    requireNotNegative({ limit, offset, maxDepth });
    conditions.forEach(requireKnownKind);
    // The server filters by the labels of a prefix before the first wildcard.
    const path = conditions.find((condition) => condition.matchType === "prefix")?.path ?? [];
    const prefix = path.includes("*") ? path.slice(0, path.indexOf("*")) : path;
    const namespaces = new Map<string, string[]>();
    for (const { namespace } of await this.#listed(prefix)) {
      if (conditions.every((condition) => matches(namespace, condition))) {
        const part = namespace.slice(0, maxDepth);
        namespaces.set(pathOf(part), part);
      }
    }
    const sorted = [...namespaces].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, namespace]) => namespace);
    return sorted.slice(offset, offset + limit);
  }
}

function requireNoIndex({ index }: PutOperation): void {
  if (index !== undefined && index !== null) {
    throw new Error("index is not supported: every word of an item can be found. Leave out what must not be");
  }
}

/** A slice takes a negative number from the other end. */
function requireNotNegative(numbers: Record<string, number | undefined>): void {
  for (const [name, number = 0] of Object.entries(numbers)) {
    if (typeof number !== "number" || !(number >= 0)) {
      throw new RangeError(`${name} must be a number that is not negative`);
    }
  }
}

function requireKnownKind({ matchType }: MatchCondition): void {
  if (matchType !== "prefix" && matchType !== "suffix") {
    throw new TypeError("a condition on namespaces has matchType prefix or suffix");
  }
}

/** A value as JSON. What is no object would not be an item. */
function contentOf(value: Record<string, unknown>): string {
  const content = jsonOf(value);
  if (!content.startsWith("{")) {
    throw new TypeError("a value must be an object");
  }
  return content;
}

function isMissing(error: unknown): boolean {
  return error instanceof MunimentError && error.reason === "MEMORY_NOT_FOUND";
}

/** The item that a memory stores. Undefined if no store wrote it. */
function itemOf(memory: Memory): Item | undefined {
  const { key: whole, content, tags } = memory;
  const [, path, name, ...rest] = whole.split("/");
  if (path === undefined || name === undefined || rest.length > 0 || !tags.includes(TAG)) {
    return undefined;
  }
  try {
    const namespace = path === "" ? [] : path.split(".").map(decodeURIComponent);
    const [key, value] = [decodeURIComponent(name), JSON.parse(content)];
    if (keyOf(namespace, key) !== whole || typeof value !== "object" || value === null || Array.isArray(value)) {
      return undefined;
    }
    return { namespace, key, value, ...timesOf(memory) };
  } catch {
    return undefined;
  }
}

function timesOf({ createTime, updateTime }: Memory): { createdAt: Date; updatedAt: Date } {
  const [createdAt, updatedAt] = [createTime, updateTime].map((time) => (time ? timestampDate(time) : new Date(0)));
  return { createdAt: createdAt as Date, updatedAt: updatedAt as Date };
}

function begins(namespace: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((label, depth) => namespace[depth] === label);
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && begins(one, other);
}

/** Whether a namespace begins or ends as a condition says. A `*` matches any one label. */
function matches(namespace: readonly string[], { matchType, path }: MatchCondition): boolean {
  if (namespace.length < path.length) {
    return false;
  }
  const start = matchType === "prefix" ? 0 : namespace.length - path.length;
  return path.every((wanted, index) => wanted === "*" || wanted === namespace[start + index]);
}
