import type { SessionClient } from "./session.js";

/** Check that an adapter gets what it can use: types do not tell programs in plain JavaScript. */
export function requireSession(session: SessionClient): void {
  if (!(session?.memories && session.passages)) {
    throw new TypeError("pass the client of an open session: await host.openSession(…)");
  }
}
