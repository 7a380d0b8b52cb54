// What a call is made with: the key of a host, or the token of a session.

import type { MunimentError } from "./errors.js";

/** How long a call waits: the milliseconds that are left of its deadline, and what aborts it. */
export interface Deadline {
  readonly leftMs: () => number;
  readonly signal: AbortSignal | undefined;
}

/** A credential, which may be renewed between two calls. */
export interface Credential {
  /** The one that holds now. */
  readonly current: string;
  /** The one for a call that begins now. */
  fresh(deadline: Deadline): Promise<string>;
  /** Another for a call that was refused, and so not executed. Undefined if the refusal stands. */
  replacement(sent: string, refusal: MunimentError, deadline: Deadline): Promise<string | undefined>;
}

/** A credential that stays the same. */
export function fixed(credential: string): Credential {
  const current = checked(credential);
  return { current, fresh: async () => current, replacement: async () => undefined };
}

/** The credential. One that no header can carry is refused without being shown. */
export function checked(credential: string): string {
  if (!/^[!-~]+$/.test(credential)) {
    throw new TypeError("a credential is visible ASCII characters: is there a line end in it?");
  }
  return credential;
}
