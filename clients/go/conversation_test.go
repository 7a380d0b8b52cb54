package muniment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const (
	public       = munimentv1.Classification_CLASSIFICATION_PUBLIC
	internal     = munimentv1.Classification_CLASSIFICATION_INTERNAL
	confidential = munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL
)

var (
	expired = refusal(codes.Unauthenticated, "CREDENTIAL_EXPIRED")
	invalid = refusal(codes.Unauthenticated, "CREDENTIAL_INVALID")
	gone    = refusal(codes.NotFound, "SESSION_NOT_FOUND")
)

func refusal(code codes.Code, reason string, details ...proto.Message) *status.Status {
	info := &errdetails.ErrorInfo{Domain: "muniment.v1", Reason: reason}
	return failure(code, "a text", append([]proto.Message{info}, details...)...)
}

// hosted is a server whose sessions s1, s2 and so on have the tokens t1, t2 and so on.
type hosted struct {
	*fake
	host *muniment.Host

	mu       sync.Mutex
	lengths  []time.Duration // of the next sessions; then they are an hour
	sessions []*munimentv1.Session
	taint    munimentv1.Classification
}

func serveSessions(t *testing.T, lengths ...time.Duration) *hosted {
	t.Helper()
	h := &hosted{fake: serve(t), lengths: lengths, taint: public}
	h.host = hostOf(t, connect(t, h.fake))
	h.answers["OpenSession"] = func(request proto.Message) (proto.Message, *status.Status) {
		opened := request.(*munimentv1.OpenSessionRequest)
		session := h.opened(opened.GetConversationId(), opened.GetTaint())
		return &munimentv1.OpenSessionResponse{Session: session, Token: "t" + session.GetSessionId()[1:]}, nil
	}
	h.answers["ResetSession"] = func(proto.Message) (proto.Message, *status.Status) {
		session := h.opened("chat-42", public)
		return &munimentv1.ResetSessionResponse{Session: session, Token: "t" + session.GetSessionId()[1:]}, nil
	}
	h.answers["RenewSession"] = func(request proto.Message) (proto.Message, *status.Status) {
		renew := request.(*munimentv1.RenewSessionRequest)
		return &munimentv1.RenewSessionResponse{Session: h.found(renew.GetSessionId())}, nil
	}
	h.answers["RaiseTaint"] = func(request proto.Message) (proto.Message, *status.Status) {
		raise := request.(*munimentv1.RaiseTaintRequest)
		h.raised(raise.GetTaint())
		return &munimentv1.RaiseTaintResponse{Session: h.found(raise.GetSessionId())}, nil
	}
	return h
}

func (h *hosted) opened(conversation string, taint munimentv1.Classification) *munimentv1.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if taint != munimentv1.Classification_CLASSIFICATION_UNSPECIFIED {
		h.taint = taint
	}
	length := time.Hour
	if len(h.lengths) > 0 {
		length, h.lengths = h.lengths[0], h.lengths[1:]
	}
	begun := time.Unix(1000, 0)
	session := &munimentv1.Session{
		SessionId:      fmt.Sprintf("s%d", len(h.sessions)+1),
		AgentId:        "ada",
		ConversationId: conversation,
		Taint:          h.taint,
		CreateTime:     timestamppb.New(begun),
		ExpireTime:     timestamppb.New(begun.Add(length)),
	}
	h.sessions = append(h.sessions, session)
	return session
}

func (h *hosted) found(id string) *munimentv1.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	index := slices.IndexFunc(h.sessions, func(each *munimentv1.Session) bool { return each.GetSessionId() == id })
	session := proto.CloneOf(h.sessions[index])
	session.Taint = h.taint
	return session
}

func (h *hosted) raised(taint munimentv1.Classification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taint = taint
}

// since are the calls that were heard since this was asked the last time: the method, what it is about, and the
// credential of a session.
func (h *hosted) since() []string {
	h.fake.mu.Lock()
	defer h.fake.mu.Unlock()
	var all []string
	for _, each := range h.heard {
		parts := []string{each.method}
		switch request := each.requests[0].(type) {
		case *munimentv1.OpenSessionRequest:
			parts = append(parts, strings.TrimPrefix(request.GetTaint().String(), "CLASSIFICATION_"))
		case interface{ GetSessionId() string }:
			parts = append(parts, request.GetSessionId())
		}
		if credential := strings.TrimPrefix(each.authorization[0], "Bearer "); credential != hostKey {
			parts = append(parts, credential)
		}
		all = append(all, strings.Join(parts, " "))
	}
	h.heard = nil
	return all
}

func (h *hosted) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := h.since(); !slices.Equal(got, want) {
		t.Errorf("heard %q, not %q", got, want)
	}
}

func (h *hosted) conversation(t *testing.T) *muniment.Conversation {
	t.Helper()
	conversation, err := h.host.Conversation(t.Context(), "ada", "chat-42")
	if err != nil {
		t.Fatal(err)
	}
	h.expect(t, "OpenSession UNSPECIFIED")
	return conversation
}

func save(t *testing.T, session *muniment.Conversation) string {
	t.Helper()
	_, err := session.SaveMemory(t.Context(), saveRequest())
	return why(err)
}

func deletes(ctx context.Context, session *muniment.Conversation) string {
	_, err := session.DeleteMemory(ctx, &munimentv1.DeleteMemoryRequest{Key: "tea"})
	return why(err)
}

// why is the reason why a call failed, and empty if it did not.
func why(err error) string {
	if err == nil {
		return ""
	}
	failed, ok := err.(*muniment.Error)
	if !ok || failed.ReasonName == "" {
		return status.Code(err).String()
	}
	return failed.ReasonName
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestASessionWithLittleTimeIsRenewed(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 4*time.Second, 0)
	conversation := h.conversation(t)
	equal(t, save(t, conversation), "")
	h.expect(t, "SaveMemory t1")

	conversation = h.conversation(t)
	h.raised(confidential)
	equal(t, save(t, conversation), "")

	h.expect(t, "RenewSession s2", "SaveMemory t2")
	equal(t, conversation.Token(), "t2")
	equal(t, conversation.Current().GetTaint(), confidential)
	equal(t, conversation.Opened.GetTaint(), public)
}

func TestASessionIsRenewedForTheTimeForWhichItWasOpened(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, time.Minute+time.Millisecond)
	conversation, err := h.host.Conversation(t.Context(), "ada", "chat-42", func(request *munimentv1.OpenSessionRequest) {
		request.Taint = internal
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, conversation.Opened.GetTaint(), internal)
	h.fails("SaveMemory", expired)
	save(t, conversation)

	want := &munimentv1.RenewSessionRequest{SessionId: "s1", Ttl: durationpb.New(time.Minute + time.Millisecond)}
	if renewals := h.calls("RenewSession"); len(renewals) != 1 || !proto.Equal(renewals[0].requests[0], want) {
		t.Error(renewals)
	}
}

func TestASessionThatCannotBeRenewedInTimeGoesOnAndIsRenewedLater(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, time.Second)
	conversation := h.conversation(t)
	time.Sleep(750 * time.Millisecond)
	h.fails("RenewSession", refusal(codes.Internal, "INTERNAL"))

	equal(t, save(t, conversation), "")
	equal(t, save(t, conversation), "")
	h.expect(t, "RenewSession s1", "SaveMemory t1", "SaveMemory t1")
	time.Sleep(60 * time.Millisecond)
	equal(t, save(t, conversation), "")
	equal(t, save(t, conversation), "")
	h.expect(t, "RenewSession s1", "SaveMemory t1", "SaveMemory t1")
}

func TestACallWhoseTokenHasExpiredIsMadeAgainWhateverItIs(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired)

	equal(t, deletes(t.Context(), conversation), "")
	h.expect(t, "DeleteMemory t1", "RenewSession s1", "DeleteMemory t1")

	h.fails("DeleteMemory", expired, expired)
	equal(t, deletes(t.Context(), conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "DeleteMemory t1", "RenewSession s1", "DeleteMemory t1")
}

func TestASessionThatSomebodyHasEndedIsNotRenewed(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", expired)
	h.fails("RenewSession", gone)

	equal(t, save(t, conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "SaveMemory t1", "RenewSession s1")
}

func TestOnlyTheSessionOfAConversationIsRenewedAndOnlyIfItHasExpired(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", invalid, expired)

	equal(t, save(t, conversation), "CREDENTIAL_INVALID")
	_, err := sessionOf(t, conversation.Conn()).SaveMemory(t.Context(), saveRequest())
	equal(t, why(err), "CREDENTIAL_EXPIRED")
	h.expect(t, "SaveMemory t1", "SaveMemory "+token)
}

func TestARenewalThatFailsIsTheErrorOfTheCall(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired)
	h.fails("RenewSession", invalid)

	equal(t, deletes(t.Context(), conversation), "CREDENTIAL_INVALID")
	h.expect(t, "DeleteMemory t1", "RenewSession s1")
}

func TestAStreamBeginsWithAFreshTokenAndIsNeverMadeAgain(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)
	passages := []*munimentv1.StorePassageRequest{{Content: "p", PassageId: noteID}}

	h.fails("ImportPassages", expired)
	_, err := conversation.ImportAll(t.Context(), passages)
	equal(t, why(err), "CREDENTIAL_EXPIRED")
	h.expect(t, "RenewSession s1", "ImportPassages t1")
}

func TestARenewalTakesNoLongerThanTheCall(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired)
	answer := make(chan bool)
	h.gate("RenewSession", func() { <-answer })
	defer close(answer)

	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	equal(t, deletes(short, conversation), "DeadlineExceeded")
}

func TestClosingClosesTheSessionUnlessItHasEnded(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("CloseSession", refusal(codes.Internal, "INTERNAL"), gone)

	if err := conversation.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "INTERNAL") {
		t.Error(err)
	}
	for range 2 {
		if err := conversation.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	h.expect(t, "CloseSession s1", "CloseSession s1", "CloseSession s1")
}

func TestARaiseIsOfASessionThatIsOpen(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)

	if err := conversation.RaiseTaint(t.Context(), confidential, "read the payroll"); err != nil {
		t.Fatal(err)
	}

	h.expect(t, "RenewSession s1", "RaiseTaint s1")
	equal(t, conversation.Current().GetTaint(), confidential)
}

func TestAResetGivesAnotherConversation(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	old := h.conversation(t)
	h.fails("ResetSession", refusal(codes.Internal, "INTERNAL"))

	_, err := old.Reset(t.Context(), "the context was wiped")
	equal(t, why(err), "INTERNAL")
	anew, err := old.Reset(t.Context(), "the context was wiped")
	if err != nil {
		t.Fatal(err)
	}
	h.expect(t, "RenewSession s1", "ResetSession s1", "RenewSession s1", "ResetSession s1")
	h.fails("SaveMemory", expired)
	equal(t, save(t, anew), "")
	h.expect(t, "SaveMemory t2", "RenewSession s2", "SaveMemory t2")
}

func TestAConversationIsPrintedWithoutItsToken(t *testing.T) {
	t.Parallel()
	conversation := serveSessions(t).conversation(t)
	if printed := fmt.Sprintf("%v %+v %#v", conversation, *conversation, *conversation.Session); strings.Contains(printed, "t1") {
		t.Error(printed)
	}
}
