package muniment

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A Session is one session of an agent: it writes at its taint, and reads up to it. It may be used by several
// goroutines.
type Session struct {
	munimentv1.MemoryServiceClient
	munimentv1.NoteServiceClient
	munimentv1.PassageServiceClient
	munimentv1.PromptServiceClient
	munimentv1.VersionServiceClient
	SessionBlocks
	OwnSession

	// Opened is the session as it was when this client opened it; a host may have raised its taint since. It is nil
	// for a session that was made from a token: call GetSession instead.
	Opened *munimentv1.Session

	conn  *Conn
	token func() string
}

// SessionBlocks is what a session does with core blocks: it reads its agent's own and those that the host attached, and
// writes its agent's own.
type SessionBlocks interface {
	// ListBlocks returns the visible blocks by label.
	ListBlocks(context.Context, *munimentv1.ListBlocksRequest, ...grpc.CallOption) (*munimentv1.ListBlocksResponse, error)
	// GetBlock returns a block at its highest visible level.
	GetBlock(context.Context, *munimentv1.GetBlockRequest, ...grpc.CallOption) (*munimentv1.GetBlockResponse, error)
	// UpdateBlock creates or replaces a block at the session's own level.
	UpdateBlock(context.Context, *munimentv1.UpdateBlockRequest, ...grpc.CallOption) (*munimentv1.UpdateBlockResponse, error)
	// EditBlock appends to a block, inserts a line or replaces one text.
	EditBlock(context.Context, *munimentv1.EditBlockRequest, ...grpc.CallOption) (*munimentv1.EditBlockResponse, error)
	// DeleteBlock deletes the session's own-level version.
	DeleteBlock(context.Context, *munimentv1.DeleteBlockRequest, ...grpc.CallOption) (*munimentv1.DeleteBlockResponse, error)
}

// OwnSession is what a session does with itself. The requests need no session_id.
type OwnSession interface {
	// GetSession returns the session as it is now.
	GetSession(context.Context, *munimentv1.GetSessionRequest, ...grpc.CallOption) (*munimentv1.GetSessionResponse, error)
	// CloseSession closes the session. Its token is invalid from then on.
	CloseSession(context.Context, *munimentv1.CloseSessionRequest, ...grpc.CallOption) (*munimentv1.CloseSessionResponse, error)
}

// Session gives the connection to the holder of a session's token that was kept.
func (c *Conn) Session(token string) (*Session, error) {
	return c.opened(token, nil)
}

func (c *Conn) opened(token string, session *munimentv1.Session) (*Session, error) {
	held, err := hold(token)
	if err != nil {
		return nil, err
	}
	made := c.with(held).session(session)
	made.token = held.token
	return made, nil
}

// session is that of the connection's credential, but for its token.
func (c *Conn) session(opened *munimentv1.Session) *Session {
	return &Session{
		MemoryServiceClient:  munimentv1.NewMemoryServiceClient(c),
		NoteServiceClient:    munimentv1.NewNoteServiceClient(c),
		PassageServiceClient: munimentv1.NewPassageServiceClient(c),
		PromptServiceClient:  munimentv1.NewPromptServiceClient(c),
		VersionServiceClient: munimentv1.NewVersionServiceClient(c),
		SessionBlocks:        munimentv1.NewBlockServiceClient(c),
		OwnSession:           munimentv1.NewSessionServiceClient(c),
		Opened:               opened,
		conn:                 c,
	}
}

// ImportAll imports passages that are all at hand. If each of them has a PassageId, the import is made again like other
// safe calls: what the server has stored already then counts as existing. The deadline is for all attempts.
func (s *Session) ImportAll(
	ctx context.Context, passages []*munimentv1.StorePassageRequest, options ...grpc.CallOption,
) (*munimentv1.ImportPassagesResponse, error) {
	ctx, cancel := s.conn.withDeadline(ctx)
	defer cancel()
	safe := !slices.ContainsFunc(passages, func(passage *munimentv1.StorePassageRequest) bool {
		return passage.GetPassageId() == ""
	})
	var response *munimentv1.ImportPassagesResponse
	err := repeat(ctx, func() (bool, error) {
		var err error
		response, err = s.importOnce(ctx, passages, options)
		return !s.conn.once && safe && passes(err), err
	})
	return response, err
}

func (s *Session) importOnce(
	ctx context.Context, passages []*munimentv1.StorePassageRequest, options []grpc.CallOption,
) (*munimentv1.ImportPassagesResponse, error) {
	ctx, cancel := context.WithCancel(ctx) // A stream that is not read to its end would stay open.
	defer cancel()
	stream, err := s.ImportPassages(ctx, options...)
	if err != nil {
		return nil, err
	}
	for _, passage := range passages {
		if stream.Send(&munimentv1.ImportPassagesRequest{Passage: passage}) != nil {
			break // The server ended the stream. CloseAndRecv returns the error.
		}
	}
	return stream.CloseAndRecv()
}

// Conn is the connection, with the session's token. Whoever has connected closes it.
func (s *Session) Conn() *Conn {
	return s.conn
}

// Token is the credential. Whoever has it is this session.
func (s *Session) Token() string {
	return s.token()
}
