// Parts of services: the methods that one kind of caller may call.

import type { Client } from "@connectrpc/connect";
import type { BlockService } from "./gen/muniment/v1/block_service_pb.js";
import type { SessionService } from "./gen/muniment/v1/session_service_pb.js";

const HOST_SESSIONS = ["getSession", "listSessions", "renewSession", "raiseTaint", "closeSession"] as const;
const HOST_BLOCKS = [
  "createSharedBlock",
  "deleteSharedBlock",
  "attachBlock",
  "detachBlock",
  "listBlockConsumers",
] as const;
const SESSION_SESSIONS = ["getSession", "closeSession"] as const;
const SESSION_BLOCKS = ["listBlocks", "getBlock", "updateBlock", "editBlock", "deleteBlock"] as const;

/** What a host does with sessions, beside opening and resetting them: those responses would show a token. */
export type HostSessions = Pick<Client<typeof SessionService>, (typeof HOST_SESSIONS)[number]>;

/** What a host does with blocks: it shares them. */
export type HostBlocks = Pick<Client<typeof BlockService>, (typeof HOST_BLOCKS)[number]>;

/** What a session does with itself. */
export type OwnSession = Pick<Client<typeof SessionService>, (typeof SESSION_SESSIONS)[number]>;

/** What a session does with the blocks of its agent. */
export type SessionBlocks = Pick<Client<typeof BlockService>, (typeof SESSION_BLOCKS)[number]>;

export function hostSessions(sessions: Client<typeof SessionService>): HostSessions {
  return part(sessions, HOST_SESSIONS);
}

export function hostBlocks(blocks: Client<typeof BlockService>): HostBlocks {
  return part(blocks, HOST_BLOCKS);
}

export function ownSession(sessions: Client<typeof SessionService>): OwnSession {
  return part(sessions, SESSION_SESSIONS);
}

export function sessionBlocks(blocks: Client<typeof BlockService>): SessionBlocks {
  return part(blocks, SESSION_BLOCKS);
}

function part<Service extends object, Name extends keyof Service>(
  service: Service,
  names: readonly Name[],
): Pick<Service, Name> {
  return Object.fromEntries(names.map((name) => [name, service[name]])) as Pick<Service, Name>;
}
