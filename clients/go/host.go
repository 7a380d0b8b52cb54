package muniment

import (
	"context"

	"google.golang.org/grpc"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A Host is the trusted runtime around a model: it manages agents, opens, resets and closes sessions, raises taint,
// shares blocks, releases items and reads the audit. It may be used by several goroutines.
type Host struct {
	munimentv1.AgentServiceClient
	munimentv1.AuditServiceClient
	munimentv1.ReleaseServiceClient
	HostSessions
	HostBlocks

	conn     *Conn
	sessions munimentv1.SessionServiceClient
}

// HostSessions is what a host does with sessions, beside opening and resetting them.
type HostSessions interface {
	// GetSession returns any session of an agent that the key knows, up to the key's ceiling, closed ones too.
	GetSession(context.Context, *munimentv1.GetSessionRequest, ...grpc.CallOption) (*munimentv1.GetSessionResponse, error)
	// ListSessions returns the sessions of an agent, newest first, up to the key's ceiling.
	ListSessions(context.Context, *munimentv1.ListSessionsRequest, ...grpc.CallOption) (*munimentv1.ListSessionsResponse, error)
	// RenewSession has a session, which may have expired, last for another while. Its token stays.
	RenewSession(context.Context, *munimentv1.RenewSessionRequest, ...grpc.CallOption) (*munimentv1.RenewSessionResponse, error)
	// RaiseTaint raises the taint of the session's conversation, and so of all its sessions. Reveal to the model only
	// after it has returned.
	RaiseTaint(context.Context, *munimentv1.RaiseTaintRequest, ...grpc.CallOption) (*munimentv1.RaiseTaintResponse, error)
	// CloseSession closes a session. Its token is invalid from then on.
	CloseSession(context.Context, *munimentv1.CloseSessionRequest, ...grpc.CallOption) (*munimentv1.CloseSessionResponse, error)
}

// HostBlocks is how a host shares blocks of one agent with others.
type HostBlocks interface {
	// CreateSharedBlock declares a block as shared.
	CreateSharedBlock(context.Context, *munimentv1.CreateSharedBlockRequest, ...grpc.CallOption) (*munimentv1.CreateSharedBlockResponse, error)
	// DeleteSharedBlock ends the sharing. The owner keeps the block.
	DeleteSharedBlock(context.Context, *munimentv1.DeleteSharedBlockRequest, ...grpc.CallOption) (*munimentv1.DeleteSharedBlockResponse, error)
	// AttachBlock lets another agent read a shared block.
	AttachBlock(context.Context, *munimentv1.AttachBlockRequest, ...grpc.CallOption) (*munimentv1.AttachBlockResponse, error)
	// DetachBlock ends that.
	DetachBlock(context.Context, *munimentv1.DetachBlockRequest, ...grpc.CallOption) (*munimentv1.DetachBlockResponse, error)
	// ListBlockConsumers returns the agents that a shared block is attached to, by id.
	ListBlockConsumers(context.Context, *munimentv1.ListBlockConsumersRequest, ...grpc.CallOption) (*munimentv1.ListBlockConsumersResponse, error)
}

// Host gives the connection to the holder of a host key.
func (c *Conn) Host(key string) (*Host, error) {
	conn, err := c.WithCredential(key)
	if err != nil {
		return nil, err
	}
	sessions := munimentv1.NewSessionServiceClient(conn)
	return &Host{
		AgentServiceClient:   munimentv1.NewAgentServiceClient(conn),
		AuditServiceClient:   munimentv1.NewAuditServiceClient(conn),
		ReleaseServiceClient: munimentv1.NewReleaseServiceClient(conn),
		HostSessions:         sessions,
		HostBlocks:           munimentv1.NewBlockServiceClient(conn),
		conn:                 conn,
		sessions:             sessions,
	}, nil
}

// Conn is the connection, with the host's credential. Whoever has connected closes it.
func (h *Host) Conn() *Conn {
	return h.conn
}

// OpenSession opens a session over the host's connection. Without a Taint, it has the taint of its conversation, or
// PUBLIC if that is new. If the Taint is below that of the conversation, it fails with CONVERSATION_TAINTED, and [Detail]
// has the latter in ConversationTainted.
func (h *Host) OpenSession(
	ctx context.Context, request *munimentv1.OpenSessionRequest, options ...grpc.CallOption,
) (*Session, error) {
	opened, err := h.sessions.OpenSession(ctx, request, options...)
	if err != nil {
		return nil, err
	}
	return h.conn.opened(opened.GetToken(), opened.GetSession())
}

// ResetSession starts a conversation anew: it closes all its sessions and opens one at PUBLIC. By this call the host
// states that it has wiped the model's context.
func (h *Host) ResetSession(
	ctx context.Context, request *munimentv1.ResetSessionRequest, options ...grpc.CallOption,
) (*Session, error) {
	opened, err := h.sessions.ResetSession(ctx, request, options...)
	if err != nil {
		return nil, err
	}
	return h.conn.opened(opened.GetToken(), opened.GetSession())
}
