package muniment

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A Conversation is a [Session] that its host opens again in the same conversation: before a call, if less than a
// quarter of its time is left, and when it has expired. It may be used by several goroutines.
//
// Once it has been closed or reset, it is never opened again: calls fail with CREDENTIAL_INVALID, or CREDENTIAL_EXPIRED
// if it had expired before.
type Conversation struct {
	*Session

	host     *Host
	renewals *renewals
}

// Conversation opens a session that goes on for as long as its conversation does. Without a conversation id, the
// conversation is new. The options change the request, such as its Taint and its Ttl, which is that of every session.
func (h *Host) Conversation(
	ctx context.Context, agentID, conversationID string, options ...func(*munimentv1.OpenSessionRequest),
) (*Conversation, error) {
	request := &munimentv1.OpenSessionRequest{AgentId: agentID, ConversationId: conversationID}
	for _, change := range options {
		change(request)
	}
	opened, err := openHeld(ctx, h.sessions, request)
	if err != nil {
		return nil, err
	}
	return h.conversation(opened, request.GetTtl()), nil
}

func (h *Host) conversation(opened *held, ttl *durationpb.Duration) *Conversation {
	r := &renewals{host: h.sessions, ttl: ttl}
	r.take(opened)
	session := h.conn.with(r).session(opened.session)
	session.token = func() string { return r.current().token() }
	return &Conversation{Session: session, host: h, renewals: r}
}

// Current is the session that is open now: as it was when it was opened, or raised by this client. Another host may have
// raised it since.
func (c *Conversation) Current() *munimentv1.Session {
	return c.renewals.session()
}

// RaiseTaint raises the taint of the conversation. Reveal to the model only after it has returned. The reason is for the
// audit log, and must not contain content.
func (c *Conversation) RaiseTaint(ctx context.Context, taint munimentv1.Classification, reason string) error {
	id := c.renewals.fresh(ctx).session.GetSessionId()
	request := &munimentv1.RaiseTaintRequest{SessionId: id, Taint: taint, Reason: reason}
	raised, err := c.host.RaiseTaint(ctx, request)
	if err == nil {
		c.renewals.show(raised.GetSession())
	}
	return err
}

// Reset starts the conversation anew, at PUBLIC, as another Conversation. By this call the host states that it has wiped
// the model's context. This Conversation is over: its calls fail.
func (c *Conversation) Reset(ctx context.Context, reason string) (*Conversation, error) {
	c.renewals.fresh(ctx)
	if err := c.renewals.end(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	request := &munimentv1.ResetSessionRequest{SessionId: c.Current().GetSessionId(), Reason: reason}
	reset, err := c.renewals.host.ResetSession(ctx, request)
	if err != nil {
		c.renewals.goOn()
		return nil, err
	}
	opened, err := holdSession(reset, begun)
	if err != nil {
		return nil, err
	}
	return c.host.conversation(opened, c.renewals.ttl), nil
}

// Close closes the session, and the one before the last renewal. It is no error if they have ended already.
func (c *Conversation) Close(ctx context.Context) error {
	return c.renewals.close(ctx)
}

// renewals are the credential of a conversation.
type renewals struct {
	host munimentv1.SessionServiceClient
	ttl  *durationpb.Duration

	mu       sync.Mutex
	now      *held
	previous *held
	shown    *munimentv1.Session // of now
	// The ids of the sessions that close closes: at most those of previous and now.
	open     []string
	underWay *renewal
	over     bool
}

// A renewal is one attempt, which serves all calls that wait for it.
type renewal struct {
	done      chan struct{}
	renewed   bool
	err       error
	abandoned bool // because the call that made it had no more time
}

func (r *renewals) current() *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *renewals) session() *munimentv1.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown
}

// fresh renews the session in time. If that fails, the old token is still valid for a while.
func (r *renewals) fresh(ctx context.Context) *held {
	now := r.current()
	if time.Now().Before(now.due) {
		return now
	}
	_, _ = r.renewed(ctx, now)
	return r.current()
}

func (r *renewals) replacement(ctx context.Context, sent *held, refusal error) (*held, error) {
	switch reasonName(refusal) {
	case "PAGE_TOKEN_INVALID":
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.previous, nil // The page token may belong to it.
	case credentialExpired:
		if renewed, err := r.renewed(ctx, sent); err != nil || !renewed {
			return nil, err
		}
		return r.current(), nil
	}
	return nil, nil
}

// renewed says whether there is another session in place of the old one, after at most one renewal.
func (r *renewals) renewed(ctx context.Context, old *held) (bool, error) {
	for {
		under, mine, done := r.join(old)
		if done {
			return true, nil
		}
		if mine {
			r.run(ctx, under, old)
			return under.renewed, under.err
		}
		if err := wait(ctx, under); err != nil {
			return false, err
		}
		if !under.abandoned {
			return under.renewed, under.err
		}
	}
}

// join returns the renewal that is under way, or begins one. It says whether the renewal is the caller's to run, and
// whether none is needed.
func (r *renewals) join(old *held) (under *renewal, mine, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != old {
		return nil, false, true
	}
	if r.underWay == nil {
		r.underWay = &renewal{done: make(chan struct{})}
		return r.underWay, true, false
	}
	return r.underWay, false, false
}

func (r *renewals) run(ctx context.Context, under *renewal, old *held) {
	opened, err := r.reopened(ctx, old)
	r.mu.Lock()
	defer r.mu.Unlock()
	if opened != nil {
		r.take(opened)
	}
	under.renewed, under.err, under.abandoned = opened != nil, err, err != nil && ctx.Err() != nil
	r.underWay = nil
	close(under.done)
}

// take makes a session the one that is open now.
func (r *renewals) take(opened *held) {
	r.previous, r.now, r.shown = r.now, opened, opened.session
	r.open = append(slices.Clone(r.open[max(0, len(r.open)-1):]), opened.session.GetSessionId())
}

func wait(ctx context.Context, under *renewal) error {
	select {
	case <-under.done:
		return nil
	case <-ctx.Done():
		return errorOf(status.FromContextError(ctx.Err()).Err(), nil)
	}
}

// reopened opens another session in place of an old one. It is nil if somebody has ended that: then it is for the host
// to clear the model's context.
func (r *renewals) reopened(ctx context.Context, old *held) (*held, error) {
	if r.isOver() {
		return nil, nil
	}
	found, err := r.host.GetSession(ctx, &munimentv1.GetSessionRequest{SessionId: old.session.GetSessionId()})
	if isGone(err) || err == nil && hasEnded(found.GetSession()) {
		return nil, nil
	}
	if err == nil && isLower(found.GetSession(), r.session()) {
		return nil, nil // the server was set back to before a raise
	}
	if err != nil {
		return nil, err
	}
	// Never without a taint: the conversation may be reset meanwhile.
	request := &munimentv1.OpenSessionRequest{
		AgentId:        found.GetSession().GetAgentId(),
		ConversationId: found.GetSession().GetConversationId(),
		Taint:          found.GetSession().GetTaint(),
		Integrity:      found.GetSession().GetIntegrity(),
		Ttl:            r.ttl,
		ReadOnly:       found.GetSession().GetReadOnly(),
	}
	for range mostRaises {
		opened, err := openHeld(ctx, r.host, request)
		tainted, known := Detail[*munimentv1.ConversationTainted](err)
		if !known {
			return opened, err
		}
		request.Taint = tainted.GetTaint()
		request.Integrity = min(request.GetIntegrity(), tainted.GetIntegrity())
	}
	return openHeld(ctx, r.host, request)
}

// isLower says whether either half of a label is one from which a raise had led away.
func isLower(found, known *munimentv1.Session) bool {
	return found.GetTaint() < known.GetTaint() || found.GetIntegrity() > known.GetIntegrity()
}

func (r *renewals) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// show keeps a session as it is after a raise.
func (r *renewals) show(raised *munimentv1.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown.GetSessionId() == raised.GetSessionId() {
		r.shown = raised
	}
}

// end renews no more. A renewal that is under way comes to its end first.
func (r *renewals) end(ctx context.Context) error {
	r.mu.Lock()
	r.over = true
	under := r.underWay
	r.mu.Unlock()
	if under == nil {
		return nil
	}
	return wait(ctx, under)
}

func (r *renewals) goOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = false
}

func (r *renewals) close(ctx context.Context) error {
	if err := r.end(ctx); err != nil {
		return err
	}
	var failures []error
	for _, id := range r.stillOpen() {
		_, err := r.host.CloseSession(ctx, &munimentv1.CloseSessionRequest{SessionId: id})
		if err != nil && !isGone(err) {
			failures = append(failures, err)
			continue
		}
		r.closed(id)
	}
	return errors.Join(failures...)
}

func (r *renewals) stillOpen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.open)
}

func (r *renewals) closed(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = slices.DeleteFunc(r.open, func(each string) bool { return each == id })
}

func openHeld(
	ctx context.Context, host munimentv1.SessionServiceClient, request *munimentv1.OpenSessionRequest,
) (*held, error) {
	begun := time.Now()
	opened, err := host.OpenSession(ctx, request)
	if err != nil {
		return nil, err
	}
	return holdSession(opened, begun)
}

// holdSession is a session that was opened by a call that began at a time. It is due when three quarters of its time
// have passed.
func holdSession(opened interface {
	GetToken() string
	GetSession() *munimentv1.Session
}, begun time.Time) (*held, error) {
	made, err := hold(opened.GetToken())
	if err != nil {
		return nil, err
	}
	made.session = opened.GetSession()
	length := made.session.GetExpireTime().AsTime().Sub(made.session.GetCreateTime().AsTime())
	made.due = begun.Add(length / 4 * 3)
	return made, nil
}

// hasEnded says whether somebody has closed or reset a session. One that expired is closed at that time, or not at all.
func hasEnded(session *munimentv1.Session) bool {
	return session.GetCloseTime() != nil && !proto.Equal(session.GetCloseTime(), session.GetExpireTime())
}

func isGone(err error) bool {
	return ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_SESSION_NOT_FOUND
}
