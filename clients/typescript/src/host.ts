// What a host may do: agents, sessions, taint, sharing of blocks, releases, audit.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import type { Calls } from "./calls.js";
import type { Connection } from "./connection.js";
import { Conversation, type ConversationOptions } from "./conversation.js";
import { AgentService } from "./gen/muniment/v1/agent_service_pb.js";
import { AuditService } from "./gen/muniment/v1/audit_service_pb.js";
import { BlockService } from "./gen/muniment/v1/block_service_pb.js";
import { ReleaseService } from "./gen/muniment/v1/release_service_pb.js";
import { type Session, SessionSchema } from "./gen/muniment/v1/session_pb.js";
import {
  type OpenSessionRequestSchema,
  type ResetSessionRequestSchema,
  SessionService,
} from "./gen/muniment/v1/session_service_pb.js";
import { type HostBlocks, type HostSessions, hostBlocks, hostSessions } from "./parts.js";
import { OpenedSession, SessionClient } from "./session.js";

/** The trusted runtime around a model, by its host key. */
export class HostClient {
  readonly agents: Client<typeof AgentService>;
  readonly sessions: HostSessions;
  readonly blocks: HostBlocks;
  readonly releases: Client<typeof ReleaseService>;
  readonly audit: Client<typeof AuditService>;

  readonly #calls: Calls;
  readonly #sessions: Client<typeof SessionService>;
  readonly #connection: Connection;

  /** Made by `connect`. */
  constructor(calls: Calls, connection: Connection) {
    this.#calls = calls;
    this.#connection = connection;
    this.agents = createClient(AgentService, calls);
    this.#sessions = createClient(SessionService, calls);
    this.sessions = hostSessions(this.#sessions);
    this.blocks = hostBlocks(createClient(BlockService, calls));
    this.releases = createClient(ReleaseService, calls);
    this.audit = createClient(AuditService, calls);
  }

  /**
   * Open a session at the level of what its conversation has seen so far.
   *
   * Without a taint, it is the level that the conversation has; a new one begins at PUBLIC.
   */
  async openSession(
    request: MessageInitShape<typeof OpenSessionRequestSchema>,
    options?: CallOptions,
  ): Promise<OpenedSession> {
    return this.#opened(await this.#sessions.openSession(request, options));
  }

  /**
   * Start a conversation anew: close all its sessions and open one at PUBLIC.
   *
   * By this call the host states that it has wiped the model's context.
   */
  async resetSession(
    request: MessageInitShape<typeof ResetSessionRequestSchema>,
    options?: CallOptions,
  ): Promise<OpenedSession> {
    return this.#opened(await this.#sessions.resetSession(request, options));
  }

  /**
   * Open a session that goes on as long as its conversation does: it is renewed before it expires.
   *
   * Without a conversation id, or with an empty one, the conversation is new.
   */
  conversation(agentId: string, conversationId = "", options: ConversationOptions = {}): Promise<Conversation> {
    return Conversation.open(this.#calls, { ...options, agentId, conversationId });
  }

  /** The session of a token that was kept, over the same connection. */
  session(token: string): SessionClient {
    return new SessionClient(this.#calls.withCredential(token));
  }

  /** Let go of the connection, also for the sessions that were opened over it. On the server they stay open. */
  disconnect(): void {
    this.#connection.close();
  }

  #opened(response: { session?: Session; token: string }): OpenedSession {
    return new OpenedSession(this.#calls.withCredential(response.token), response.session ?? create(SessionSchema));
  }
}
