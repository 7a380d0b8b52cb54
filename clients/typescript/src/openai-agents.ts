/**
 * A session for the OpenAI Agents SDK: the history of one conversation.
 *
 * `MunimentSession` is a `Session` of `@openai/agents`, for `run(agent, input, { session })`. An item of the history is
 * a passage with the item's JSON and the tag `muniment:openai-agents`, in the thread of the session id. So the history
 * can be searched together with the agent's other passages. Those are never part of it, in its thread or not: a text
 * that a tool stored must not come back as what the system or the user said. So a tool of a model must not choose a tag
 * that begins with `muniment:`.
 *
 * Levels apply. Items above the taint do not exist, and new ones are stored at the taint. Items below the taint cannot
 * be deleted: `popItem`, if the newest item is one, and `clearSession`, if there is any, reject with {@link LowerItems}
 * and change nothing. An item has at most 256 KiB of JSON: `addItems` stores the others, and rejects with RangeError.
 */

import { randomUUID } from "node:crypto";
import { MunimentError } from "./errors.js";
import type { Passage } from "./gen/muniment/v1/passage_pb.js";
import { isPlain } from "./json.js";
import { pages, undisturbed } from "./pages.js";
import { requireSession } from "./require-session.js";
import { RESERVED } from "./reserved.js";
import type { SessionClient } from "./session.js";

const MAX_PAGE_SIZE = 250;
const MAX_ITEM_BYTES = 256 * 1024;
/** For how long an import is retried. */
const TIMEOUT_MS = 60_000;
/** The tag of an item of a history. */
const TAG = `${RESERVED}openai-agents`;

/** Items were written at a lower classification than the conversation has now, so they cannot be deleted. */
export class LowerItems extends Error {
  override readonly name = "LowerItems";
}

/** An item, and the passage that it was read from. */
interface Stored<Item> {
  readonly passage: Passage;
  readonly item: Item;
}

/** The history of a conversation, up to the taint of Muniment's session, which it does not close. */
export class MunimentSession<Item extends object = object> {
  readonly #sessionId: string;
  readonly #session: SessionClient;

  /**
   * *sessionId* names the conversation among those of the agent. It must not be empty, and must be in Unicode's
   * Normalization Form C.
   */
  constructor(sessionId: string, session: SessionClient) {
    requireSession(session);
    // An empty thread is no filter: the history would be that of every conversation, and could be cleared.
    if (sessionId === "") {
      throw new TypeError("sessionId must not be empty");
    }
    // Threads are stored in NFC: two ids that differ only in that would be one conversation.
    if (sessionId !== sessionId.normalize("NFC")) {
      throw new TypeError("sessionId must be in Unicode's Normalization Form C");
    }
    this.#sessionId = sessionId;
    this.#session = session;
  }

  async getSessionId(): Promise<string> {
    return this.#sessionId;
  }

  /** The items in order; with a limit, the newest. */
  async getItems(limit?: number): Promise<Item[]> {
    const newest = await this.#newest(limit);
    return newest.reverse().map(({ item }) => item);
  }

  /** Add items at the end. RangeError: some have more than 256 KiB of JSON; all others were added. */
  async addItems(items: readonly Item[]): Promise<void> {
    // All of them, or none: JSON that cannot be made is found before anything is stored.
    const passages = items.map((item) => ({
      content: JSON.stringify(item),
      tags: [TAG],
      thread: this.#sessionId,
      passageId: randomUUID(),
    }));
    const fitting = passages.filter(({ content }) => Buffer.byteLength(content) <= MAX_ITEM_BYTES);
    if (fitting.length > 0) {
      // They have ids: where the taint is raised meanwhile, those that are stored already are not stored again.
      await undisturbed(() => this.#session.importAll(fitting, { timeoutMs: TIMEOUT_MS }));
    }
    const leftOut = passages.length - fitting.length;
    if (leftOut > 0) {
      throw new RangeError(`items with more than 256 KiB of JSON were not stored: ${leftOut}. All others were`);
    }
  }

  /** Delete and return the newest item. Undefined: there is none. {@link LowerItems}: it is below the taint. */
  async popItem(): Promise<Item | undefined> {
    for (;;) {
      const [newest] = await this.#newest(1);
      if (newest === undefined) {
        return undefined;
      }
      if (await this.#delete(newest.passage)) {
        return newest.item;
      }
    }
  }

  /** Delete all items. {@link LowerItems}: some are below the taint; then none was deleted. */
  async clearSession(): Promise<void> {
    const items = (await this.#newest()).map(({ passage }) => passage);
    const { session: own } = await this.#session.sessions.getSession({});
    if (items.some((item) => item.classification !== own?.taint || item.integrity !== own.integrity)) {
      throw new LowerItems("The conversation has items of a lower classification, so it cannot be cleared.");
    }
    // At most 1,000 a call. What else is stored in the thread stays.
    while ((await this.#session.passages.deletePassages({ tag: TAG, thread: this.#sessionId })).more);
  }

  /** The newest items. A passage with anything but a JSON object is none: another program wrote it. */
  async #newest(limit = Number.POSITIVE_INFINITY): Promise<Stored<Item>[]> {
    if (limit <= 0) {
      return [];
    }
    const request = { tags: [TAG], thread: this.#sessionId, pageSize: Math.min(limit, MAX_PAGE_SIZE) };
    return undisturbed(async () => {
      const newest: Stored<Item>[] = [];
      for await (const page of pages(this.#session.passages.listPassages, request)) {
        newest.push(...page.passages.flatMap((passage) => stored<Item>(passage) ?? []));
        if (newest.length >= limit) {
          break;
        }
      }
      return newest.slice(0, limit);
    });
  }

  /** Whether it was still there. */
  async #delete({ passageId }: Passage): Promise<boolean> {
    try {
      await this.#session.passages.deletePassage({ passageId });
      return true;
    } catch (error) {
      if (error instanceof MunimentError && error.reason === "PASSAGE_NOT_FOUND") {
        return false;
      }
      if (error instanceof MunimentError && error.reason === "WRITE_LEVEL_MISMATCH") {
        throw new LowerItems("The item has a lower classification, so it cannot be deleted.");
      }
      throw error;
    }
  }
}

/** The item of a passage. Undefined if it is no JSON object. */
function stored<Item extends object>(passage: Passage): Stored<Item> | undefined {
  try {
    const item: unknown = JSON.parse(passage.content);
    return isPlain(item) ? { passage, item: item as Item } : undefined;
  } catch {
    return undefined;
  }
}
