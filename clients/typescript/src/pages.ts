// Lists that come in pages.

import type { CallOptions } from "@connectrpc/connect";

/**
 * All pages of a list, each fetched when it is asked for; call options are for each page.
 *
 * `for await (const page of pages(session.memories.listMemories, { tag: "work" }))`
 *
 * TAINT_CHANGED: the taint was raised between two pages, start again.
 */
export async function* pages<Request extends { pageToken?: string }, Page extends { nextPageToken: string }>(
  list: (request: Request, options?: CallOptions) => Promise<Page>,
  request: Request,
  options?: CallOptions,
): AsyncGenerator<Page, void, undefined> {
  let page = await list(request, options);
  yield page;
  while (page.nextPageToken !== "") {
    page = await list({ ...request, pageToken: page.nextPageToken }, options);
    yield page;
  }
}
