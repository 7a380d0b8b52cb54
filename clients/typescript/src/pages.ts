// Lists that come in pages.

import type { CallOptions } from "@connectrpc/connect";
import { MunimentError } from "./errors.js";

/** How often a conversation can be raised: three times to a higher level, once to UNTRUSTED. */
export const RAISES = 4;

/** The result of a call. Starts over if the taint is raised meanwhile: at most four times. */
export async function undisturbed<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let restarts = 0; ; restarts += 1) {
    try {
      return await call();
    } catch (error) {
      if (restarts === RAISES || !isTaintChange(error)) {
        throw error;
      }
    }
  }
}

/** How a whole list is read. */
export interface AllOptions {
  /**
   * Whether the list is read again from its first page, at most four times, if the taint is raised between two pages.
   * It may then hold what is above the taint that the call began at.
   *
   * The default is false: the call fails with `TAINT_CHANGED`.
   */
  readonly restartOnTaintChange?: boolean;
}

/**
 * The pages of a list. Each loop over them begins with the first page, and fetches the others when it comes to them.
 *
 * `TAINT_CHANGED` ends a loop: a host raised the taint between two pages. The pages so far belong to the old taint;
 * begin again, or use {@link Pages.all}.
 */
export class Pages<Page extends { nextPageToken: string }> implements AsyncIterable<Page> {
  readonly #fetch: (pageToken?: string) => Promise<Page>;

  /** Made by `pages`. */
  constructor(fetch: (pageToken?: string) => Promise<Page>) {
    this.#fetch = fetch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Page, void, undefined> {
    let page = await this.#fetch();
    yield page;
    while (page.nextPageToken !== "") {
      page = await this.#fetch(page.nextPageToken);
      yield page;
    }
  }

  /** All pages of the list, all read at one taint. */
  async all({ restartOnTaintChange = false }: AllOptions = {}): Promise<Page[]> {
    return restartOnTaintChange ? undisturbed(() => this.#read()) : this.#read();
  }

  async #read(): Promise<Page[]> {
    const read: Page[] = [];
    for await (const page of this) {
      read.push(page);
    }
    return read;
  }
}

/**
 * The pages of a list; call options are for each page.
 *
 * `for await (const page of pages(session.memories.listMemories, { tag: "work" }))`
 */
export function pages<Request extends { pageToken?: string }, Page extends { nextPageToken: string }>(
  list: (request: Request, options?: CallOptions) => Promise<Page>,
  request: Request,
  options?: CallOptions,
): Pages<Page> {
  return new Pages((pageToken) => list(pageToken === undefined ? request : { ...request, pageToken }, options));
}

function isTaintChange(error: unknown): boolean {
  return error instanceof MunimentError && error.reason === "TAINT_CHANGED";
}
