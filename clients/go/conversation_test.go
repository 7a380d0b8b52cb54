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
	restricted   = munimentv1.Classification_CLASSIFICATION_RESTRICTED
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

func tainted(taint munimentv1.Classification) *status.Status {
	return refusal(codes.FailedPrecondition, "CONVERSATION_TAINTED", &munimentv1.ConversationTainted{Taint: taint})
}

// hosted is a server whose sessions s1, s2 and so on have the tokens t1, t2 and so on.
type hosted struct {
	*fake
	host *muniment.Host

	mu       sync.Mutex
	lengths  []time.Duration // of the next sessions; then they are an hour
	sessions []*munimentv1.Session
	taint    munimentv1.Classification
	trusted  munimentv1.Integrity
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
	h.answers["GetSession"] = func(request proto.Message) (proto.Message, *status.Status) {
		return &munimentv1.GetSessionResponse{Session: h.found(request.(*munimentv1.GetSessionRequest).GetSessionId())}, nil
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
	session.Taint, session.Integrity = h.taint, h.trusted
	return session
}

func (h *hosted) raised(taint munimentv1.Classification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taint = taint
}

func (h *hosted) closed(id string, at *timestamppb.Timestamp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, session := range h.sessions {
		if session.GetSessionId() == id {
			session.CloseTime = at
		}
	}
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

func TestASessionWithLittleTimeIsOpenedAgainAtTheTaintOfItsConversation(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)
	h.raised(confidential)

	equal(t, save(t, conversation), "")
	equal(t, save(t, conversation), "")

	h.expect(t, "GetSession s1", "OpenSession CONFIDENTIAL", "SaveMemory t2", "SaveMemory t2")
	equal(t, conversation.Token(), "t2")
	equal(t, conversation.Current().GetSessionId(), "s2")
	equal(t, conversation.Opened.GetSessionId(), "s1")
}

func TestEachSessionIsOpenedWithTheTimeThatWasAskedFor(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation, err := h.host.Conversation(t.Context(), "ada", "chat-42", func(request *munimentv1.OpenSessionRequest) {
		request.Ttl, request.Taint = durationpb.New(time.Minute), internal
	})
	if err != nil {
		t.Fatal(err)
	}
	save(t, conversation)

	want := &munimentv1.OpenSessionRequest{
		AgentId: "ada", ConversationId: "chat-42", Taint: internal, Ttl: durationpb.New(time.Minute),
	}
	calls := h.calls("OpenSession")
	equal(t, len(calls), 2)
	for _, each := range calls {
		if !proto.Equal(each.requests[0], want) {
			t.Error(each.requests[0])
		}
	}
}

func TestASessionThatCannotBeRenewedInTimeGoesOnWithItsToken(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)
	h.fails("OpenSession", refusal(codes.PermissionDenied, "CEILING_EXCEEDED"))

	equal(t, save(t, conversation), "")
	h.expect(t, "GetSession s1", "OpenSession PUBLIC", "SaveMemory t1")
	equal(t, save(t, conversation), "")
	h.expect(t, "GetSession s1", "OpenSession PUBLIC", "SaveMemory t2")
}

func TestACallWhoseTokenHasExpiredIsMadeAgainWhateverItIs(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired)

	equal(t, deletes(t.Context(), conversation), "")
	h.expect(t, "DeleteMemory t1", "GetSession s1", "OpenSession PUBLIC", "DeleteMemory t2")

	h.fails("DeleteMemory", expired, expired)
	equal(t, deletes(t.Context(), conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "DeleteMemory t2", "GetSession s2", "OpenSession PUBLIC", "DeleteMemory t3")
}

// All calls have been refused before the renewal is answered.
func TestCallsThatExpireTogetherWaitForOneRenewal(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired, expired, expired)
	var refused sync.WaitGroup
	refused.Add(3)
	h.gate("GetSession", refused.Wait)
	h.gate("DeleteMemory", func() {
		if len(h.calls("OpenSession")) == 0 {
			refused.Done()
		}
	})

	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() { equal(t, deletes(t.Context(), conversation), "") })
	}
	calls.Wait()

	equal(t, len(h.calls("OpenSession")), 1)
	equal(t, len(h.calls("DeleteMemory")), 6)
}

func TestASessionThatSomebodyHasEndedIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", expired, expired, expired, invalid)
	h.fails("GetSession", gone)

	equal(t, save(t, conversation), "CREDENTIAL_EXPIRED")
	h.closed("s1", timestamppb.New(time.Unix(9000, 0)))
	equal(t, save(t, conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "SaveMemory t1", "GetSession s1", "SaveMemory t1", "GetSession s1")
	h.closed("s1", h.found("s1").GetExpireTime())
	equal(t, save(t, conversation), "CREDENTIAL_INVALID")
	h.expect(t, "SaveMemory t1", "GetSession s1", "OpenSession PUBLIC", "SaveMemory t2")
}

func TestAServerThatIsSetBackToBeforeARaiseIsNoticed(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	if err := conversation.RaiseTaint(t.Context(), confidential, "read the payroll"); err != nil {
		t.Fatal(err)
	}
	h.raised(public)
	h.fails("SaveMemory", expired, expired)

	equal(t, save(t, conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "RaiseTaint s1", "SaveMemory t1", "GetSession s1")
	h.raised(confidential)
	h.trusted = munimentv1.Integrity_INTEGRITY_TRUSTED
	equal(t, save(t, conversation), "CREDENTIAL_EXPIRED")
	h.expect(t, "SaveMemory t1", "GetSession s1")
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

func TestARaiseBetweenTwoStepsOfARenewalIsFollowedAtMostFourTimes(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", expired, expired)
	h.fails("OpenSession", tainted(internal), tainted(confidential), tainted(restricted), tainted(restricted), tainted(restricted))

	equal(t, save(t, conversation), "CONVERSATION_TAINTED")
	opened := []string{"OpenSession PUBLIC", "OpenSession INTERNAL", "OpenSession CONFIDENTIAL", "OpenSession RESTRICTED"}
	h.expect(t, append(append([]string{"SaveMemory t1", "GetSession s1"}, opened...), "OpenSession RESTRICTED")...)

	h.fails("OpenSession", refusal(codes.FailedPrecondition, "CONVERSATION_TAINTED"))
	equal(t, save(t, conversation), "CONVERSATION_TAINTED")
	h.expect(t, "SaveMemory t1", "GetSession s1", "OpenSession PUBLIC")

	h.fails("SaveMemory", expired)
	h.fails("OpenSession", tainted(internal), tainted(confidential), tainted(restricted))
	equal(t, save(t, conversation), "")
	h.expect(t, append(append([]string{"SaveMemory t1", "GetSession s1"}, opened...), "SaveMemory t2")...)
}

func TestARenewalThatFindsNoServerIsTriedAgainWithTheCallThatHasNotBegun(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired, expired)
	h.fails("OpenSession", unavailable)

	equal(t, deletes(t.Context(), conversation), "")

	renewal := []string{"DeleteMemory t1", "GetSession s1", "OpenSession PUBLIC"}
	h.expect(t, append(append(renewal, renewal...), "DeleteMemory t2")...)
}

func TestAListGoesOnOverARenewal(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", expired)
	equal(t, save(t, conversation), "")
	h.since()
	foreign := refusal(codes.InvalidArgument, "PAGE_TOKEN_INVALID")
	list := func() string {
		_, err := conversation.ListMemories(t.Context(), &munimentv1.ListMemoriesRequest{PageToken: "of t1"})
		return why(err)
	}

	h.fails("ListMemories", foreign)
	equal(t, list(), "")
	h.fails("ListMemories", foreign, expired)
	equal(t, list(), "PAGE_TOKEN_INVALID")
	h.expect(t, "ListMemories t2", "ListMemories t1", "ListMemories t2", "ListMemories t1")
}

func TestAStreamBeginsWithAFreshTokenAndIsNeverMadeAgain(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)
	passages := []*munimentv1.StorePassageRequest{{Content: "p", PassageId: noteID}}

	_, err := conversation.ImportAll(t.Context(), passages)
	equal(t, why(err), "")
	h.expect(t, "GetSession s1", "OpenSession PUBLIC", "ImportPassages t2")
	h.fails("ImportPassages", expired)
	_, err = conversation.ImportAll(t.Context(), passages)
	equal(t, why(err), "CREDENTIAL_EXPIRED")
	h.expect(t, "ImportPassages t2")
}

// A call that waits for the renewal of another ends in time. If the other gives up, it renews itself.
func TestACallWaitsForARenewalNoLongerThanItsDeadline(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("DeleteMemory", expired, expired, expired)
	begun, answer := make(chan bool, 9), make(chan bool)
	h.gate("GetSession", func() { begun <- true; <-answer })

	first, giveUp := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { equal(t, deletes(first, conversation), "Canceled") })
	<-begun
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	equal(t, deletes(short, conversation), "DeadlineExceeded")
	calls.Go(func() { equal(t, deletes(t.Context(), conversation), "") })
	giveUp()
	<-begun
	close(answer)
	calls.Wait()
}

func TestClosingClosesBothSessionsAndNothingIsRenewedAfterIt(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0, 0, 0)
	conversation := h.conversation(t)
	equal(t, save(t, conversation), "")
	equal(t, save(t, conversation), "")
	h.since()
	h.fails("CloseSession", gone, refusal(codes.Internal, "INTERNAL"))

	if err := conversation.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "INTERNAL") {
		t.Error(err)
	}
	h.expect(t, "CloseSession s2", "CloseSession s3")
	for range 2 {
		if err := conversation.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	h.expect(t, "CloseSession s3")

	h.fails("SaveMemory", invalid)
	equal(t, save(t, conversation), "CREDENTIAL_INVALID")
	h.expect(t, "SaveMemory t3")
}

func TestClosingWaitsForARenewalThatIsUnderWay(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("SaveMemory", expired)
	begun, answer := make(chan bool, 1), make(chan bool)
	h.gate("GetSession", func() { begun <- true; <-answer })
	var calls sync.WaitGroup
	calls.Go(func() { save(t, conversation) })
	<-begun

	short, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	if err := conversation.Close(short); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	close(answer)
	if err := conversation.Close(t.Context()); err != nil {
		t.Error(err)
	}
	calls.Wait()
	equal(t, len(h.calls("CloseSession")), 2)
}

func TestARaiseIsOfTheSessionThatIsOpenNow(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	conversation := h.conversation(t)

	if err := conversation.RaiseTaint(t.Context(), confidential, "read the payroll"); err != nil {
		t.Fatal(err)
	}

	h.expect(t, "GetSession s1", "OpenSession PUBLIC", "RaiseTaint s2")
	equal(t, conversation.Current().GetTaint(), confidential)
}

func TestAResetGivesAnotherConversationAndTheOldOneIsOver(t *testing.T) {
	t.Parallel()
	h := serveSessions(t, 0)
	old := h.conversation(t)

	anew, err := old.Reset(t.Context(), "the context was wiped")
	if err != nil {
		t.Fatal(err)
	}
	h.expect(t, "GetSession s1", "OpenSession PUBLIC", "ResetSession s2")
	h.fails("SaveMemory", expired, expired)
	equal(t, save(t, old), "CREDENTIAL_EXPIRED")
	equal(t, save(t, anew), "")
	h.expect(t, "SaveMemory t2", "SaveMemory t3", "GetSession s3", "OpenSession PUBLIC", "SaveMemory t4")
}

func TestAConversationWhoseResetFailedGoesOn(t *testing.T) {
	t.Parallel()
	h := serveSessions(t)
	conversation := h.conversation(t)
	h.fails("ResetSession", refusal(codes.Internal, "INTERNAL"))
	h.fails("SaveMemory", expired)

	_, err := conversation.Reset(t.Context(), "")
	equal(t, why(err), "INTERNAL")
	equal(t, save(t, conversation), "")
}

func TestAConversationIsPrintedWithoutItsToken(t *testing.T) {
	t.Parallel()
	conversation := serveSessions(t).conversation(t)
	if printed := fmt.Sprintf("%v %+v %#v", conversation, *conversation, *conversation.Session); strings.Contains(printed, "t1") {
		t.Error(printed)
	}
}
