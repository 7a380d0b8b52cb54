package muniment

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A Conversation is a [Session] that its host renews: before a call, if less than a quarter of its time is left, and
// when it has expired. It may be used by several goroutines.
//
// Once it has been closed or reset, it is never renewed: calls fail with CREDENTIAL_INVALID, or CREDENTIAL_EXPIRED if it
// had expired before.
type Conversation struct {
	*Session

	host *Host
}

// Conversation opens a session that goes on for as long as its conversation does. Without a conversation id, the
// conversation is new. The options change the request, such as its Taint and its Ttl, which is that of each renewal.
func (h *Host) Conversation(
	ctx context.Context, agentID, conversationID string, options ...func(*munimentv1.OpenSessionRequest),
) (*Conversation, error) {
	request := &munimentv1.OpenSessionRequest{AgentId: agentID, ConversationId: conversationID}
	for _, change := range options {
		change(request)
	}
	begun := time.Now()
	opened, err := h.OpenSession(ctx, request)
	if err != nil {
		return nil, err
	}
	return h.conversation(opened, begun), nil
}

func (h *Host) conversation(opened *Session, begun time.Time) *Conversation {
	length := opened.Opened.GetExpireTime().AsTime().Sub(opened.Opened.GetCreateTime().AsTime())
	opened.conn.renewals = &renewals{host: h.sessions, length: length}
	opened.conn.renewals.take(opened.Opened, begun)
	return &Conversation{Session: opened, host: h}
}

// Current is the session as it was when it was opened, renewed or raised by this client. Another host may have raised it
// since.
func (c *Conversation) Current() *munimentv1.Session {
	return c.conn.renewals.current()
}

// RaiseTaint raises the taint of the conversation. Reveal to the model only after it has returned. The reason is for the
// audit log, and must not contain content.
func (c *Conversation) RaiseTaint(ctx context.Context, taint munimentv1.Classification, reason string) error {
	c.conn.renewals.fresh(ctx)
	request := &munimentv1.RaiseTaintRequest{SessionId: c.Opened.GetSessionId(), Taint: taint, Reason: reason}
	raised, err := c.host.RaiseTaint(ctx, request)
	if err == nil {
		c.conn.renewals.show(raised.GetSession())
	}
	return err
}

// Reset starts the conversation anew, at PUBLIC, as another Conversation. By this call the host states that it has wiped
// the model's context. This Conversation is over: its calls fail.
func (c *Conversation) Reset(ctx context.Context, reason string) (*Conversation, error) {
	c.conn.renewals.fresh(ctx)
	begun := time.Now()
	request := &munimentv1.ResetSessionRequest{SessionId: c.Opened.GetSessionId(), Reason: reason}
	reset, err := c.host.ResetSession(ctx, request)
	if err != nil {
		return nil, err
	}
	return c.host.conversation(reset, begun), nil
}

// Close closes the session. It is no error if it has ended already.
func (c *Conversation) Close(ctx context.Context) error {
	_, err := c.host.CloseSession(ctx, &munimentv1.CloseSessionRequest{SessionId: c.Opened.GetSessionId()})
	if isGone(err) {
		return nil
	}
	return err
}

// renewals renew the session of a conversation. Nil ones renew nothing.
type renewals struct {
	host   munimentv1.SessionServiceClient
	length time.Duration

	mu    sync.Mutex
	shown *munimentv1.Session
	due   time.Time
}

func (r *renewals) current() *munimentv1.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// show keeps the session as it is now.
func (r *renewals) show(session *munimentv1.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown = session
}

// take keeps the session, whose time began no earlier than its call. It is due when three quarters have passed.
func (r *renewals) take(session *munimentv1.Session, begun time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown, r.due = session, begun.Add(r.length/4*3)
}

// fresh renews the session in time. A failure is left to a later call: the token is valid for a while yet.
func (r *renewals) fresh(ctx context.Context) {
	if r != nil && r.isDue() {
		_ = r.renew(ctx)
	}
}

// isDue says whether to renew now. Other calls go on meanwhile, for a twentieth of the session's time.
func (r *renewals) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.due) {
		return false
	}
	r.due = now.Add(r.length / 20)
	return true
}

func (r *renewals) renew(ctx context.Context) error {
	begun := time.Now()
	request := &munimentv1.RenewSessionRequest{SessionId: r.current().GetSessionId(), Ttl: durationpb.New(r.length)}
	renewed, err := r.host.RenewSession(ctx, request)
	if err == nil {
		r.take(renewed.GetSession(), begun)
	}
	return err
}

// around sends a call with a fresh token, and once more if that had expired.
func (r *renewals) around(ctx context.Context, send func() error) error {
	r.fresh(ctx)
	refusal := send()
	if r == nil || reasonName(refusal) != credentialExpired {
		return refusal
	}
	if err := r.renew(ctx); isGone(err) {
		return refusal // Somebody has ended the session: it is for the host to clear the model's context.
	} else if err != nil {
		return err
	}
	return send()
}

func isGone(err error) bool {
	return ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND
}
