/**
 * The TypeScript client of Muniment: memory for AI agents that keeps to information-flow levels.
 *
 * `connect` gives a `HostClient` for a host key, or a `SessionClient` for a session's token.
 */

export { type CallOptions, Code } from "@connectrpc/connect";
export { type ClientOptions, connect, connectHost, connectSession } from "./connect.js";
export type { TlsOptions } from "./connection.js";
export { Conversation, type ConversationOptions } from "./conversation.js";
export type { Violation } from "./details.js";
export { MunimentError, type MunimentErrorOptions, type Reason } from "./errors.js";
export * from "./gen/muniment/v1/agent_pb.js";
export * from "./gen/muniment/v1/agent_service_pb.js";
export * from "./gen/muniment/v1/audit_pb.js";
export * from "./gen/muniment/v1/audit_service_pb.js";
export * from "./gen/muniment/v1/block_pb.js";
export * from "./gen/muniment/v1/block_service_pb.js";
export * from "./gen/muniment/v1/classification_pb.js";
export * from "./gen/muniment/v1/error_pb.js";
export * from "./gen/muniment/v1/memory_pb.js";
export * from "./gen/muniment/v1/memory_service_pb.js";
export * from "./gen/muniment/v1/note_pb.js";
export * from "./gen/muniment/v1/note_service_pb.js";
export * from "./gen/muniment/v1/passage_pb.js";
export * from "./gen/muniment/v1/passage_service_pb.js";
export * from "./gen/muniment/v1/policy_pb.js";
export * from "./gen/muniment/v1/prompt_pb.js";
export * from "./gen/muniment/v1/prompt_service_pb.js";
export * from "./gen/muniment/v1/release_pb.js";
export * from "./gen/muniment/v1/release_service_pb.js";
export * from "./gen/muniment/v1/session_pb.js";
export * from "./gen/muniment/v1/session_service_pb.js";
export * from "./gen/muniment/v1/tag_match_pb.js";
export * from "./gen/muniment/v1/version_pb.js";
export * from "./gen/muniment/v1/version_service_pb.js";
export { HostClient } from "./host.js";
export { type AllOptions, Pages, pages } from "./pages.js";
export type { HostBlocks, HostSessions, OwnSession, SessionBlocks } from "./parts.js";
export { OpenedSession, SessionClient } from "./session.js";
export type { Status } from "./statuses.js";
