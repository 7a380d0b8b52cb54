// Two worlds, seen through an adapter: one where a session above makes the same calls, and one where it does not.

import { Classification, MunimentError, type SessionClient } from "../../src/index.js";
import { someone } from "./server.js";

const { PUBLIC, CONFIDENTIAL } = Classification;

type Call = () => Promise<unknown>;
export type Calls = Call[];

/** Calls through an adapter of a session. What they write has the text in it. */
export type Adapter = (session: SessionClient, text: string) => Calls;

/** What a PUBLIC session sees, while one above makes the same calls in between, or does not. */
export async function seenBelow(adapter: Adapter, world: { above: boolean }): Promise<unknown[]> {
  const opened = await someone();
  const low = adapter(await opened(PUBLIC), "low");
  const high = world.above ? adapter(await opened(CONFIDENTIAL), "high") : [];
  const seen: unknown[] = [];
  for (const [number, call] of low.entries()) {
    await outcome(high[number]);
    seen.push(await outcome(call));
  }
  return seen;
}

/** A broken copy of an adapter: all of the process use the session of the one that was made last. */
export function leaking(adapter: Adapter): Adapter {
  let newest: SessionClient;
  return (session, text) => {
    newest = session;
    const get = (_: SessionClient, name: string | symbol) => {
      const value: unknown = Reflect.get(newest, name);
      return typeof value === "function" ? value.bind(newest) : value;
    };
    return adapter(new Proxy(session, { get }), text);
  };
}

/** What a call answers, or how it was refused. The message of a `MunimentError` has the random id of the request. */
async function outcome(call?: Call): Promise<unknown> {
  try {
    return await call?.();
  } catch (error) {
    const { name, message } = error as Error;
    return error instanceof MunimentError ? [name, error.status, error.reason, error.rawMessage] : [name, message];
  }
}
