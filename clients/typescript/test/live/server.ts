// Sessions of one agent for each test, on the server that MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY name.

import { type Classification, connect, Integrity, type OpenedSession } from "../../src/index.js";

const { MUNIMENT_ADDRESS: address = "", MUNIMENT_HOST_KEY: hostKey = "" } = process.env;
export const host = connect({ address, hostKey });

/** Opens sessions of a new agent, each with a conversation of its own. */
export async function someone(): Promise<(taint: Classification, integrity?: Integrity) => Promise<OpenedSession>> {
  const { agent } = await host.agents.createAgent({});
  return (taint, integrity = Integrity.UNTRUSTED) => host.openSession({ agentId: agent?.agentId, taint, integrity });
}
