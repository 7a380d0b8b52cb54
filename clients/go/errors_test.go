package muniment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// failed is the error that a call fails with when the server answers with a status.
func failed(t *testing.T, with *status.Status) error {
	t.Helper()
	f := serve(t)
	f.fails("AddNote", with)
	_, err := sessionOf(t, connect(t, f)).AddNote(t.Context(), &munimentv1.AddNoteRequest{Content: "tea"})
	return err
}

func reason(name string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Reason: name, Domain: "muniment.v1"}
}

func TestAnErrorSaysWhy(t *testing.T) {
	err := failed(t, failure(codes.NotFound, "no such note", reason("NOTE_NOT_FOUND")))

	var failure *muniment.Error
	if !errors.As(err, &failure) {
		t.Fatalf("%T", err)
	}
	if failure.Code != codes.NotFound || failure.ReasonName != "NOTE_NOT_FOUND" || failure.Message != "no such note" {
		t.Errorf("%+v", failure)
	}
	if err.Error() != "muniment: NOTE_NOT_FOUND: no such note" {
		t.Error(err)
	}
	wrapped := fmt.Errorf("tea: %w", err)
	if muniment.ReasonOf(wrapped) != munimentv1.ErrorReason_ERROR_REASON_NOTE_NOT_FOUND || status.Code(wrapped) != codes.NotFound {
		t.Error(wrapped)
	}
}

func TestAFullBudgetSaysWhatTakesTheRoom(t *testing.T) {
	err := failed(t, failure(codes.FailedPrecondition, "over", reason("BUDGET_EXCEEDED"), &munimentv1.BudgetExceeded{
		Usage:       &munimentv1.Usage{UsedChars: 2190, LimitChars: 2200},
		OverByChars: 3,
		Entries:     []*munimentv1.BudgetEntry{{NoteId: noteID, OwnLevel: true}},
	}))

	full, found := muniment.Detail[*munimentv1.BudgetExceeded](err)

	if !found || full.GetOverByChars() != 3 || full.GetEntries()[0].GetNoteId() != noteID {
		t.Error(full, found)
	}
}

func TestFieldsThatBreakARule(t *testing.T) {
	err := failed(t, failure(codes.InvalidArgument, "invalid", reason("FIELD_INVALID"), &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "content", Description: "too short"}, {Field: "tier", Description: "unknown"}},
	}))

	if err.Error() != "muniment: FIELD_INVALID: invalid (content: too short; tier: unknown)" {
		t.Error(err)
	}
	if request, found := muniment.Detail[*errdetails.BadRequest](err); !found || request.GetFieldViolations()[0].GetField() != "content" {
		t.Error(request, found)
	}
}

func TestAnErrorTellsItsNumbersAndNothingThatIsStored(t *testing.T) {
	for text, with := range map[string]*status.Status{
		"BUDGET_EXCEEDED: over (over by 103 characters: 2303 of 2200)": failure(
			codes.FailedPrecondition, "over", reason("BUDGET_EXCEEDED"), &munimentv1.BudgetExceeded{
				Usage:        &munimentv1.Usage{UsedChars: 2190, LimitChars: 2200},
				WouldBeChars: 2303,
				OverByChars:  103,
				Entries:      []*munimentv1.BudgetEntry{{NoteId: noteID, Preview: "Ada"}},
			}),
		"CONVERSATION_TAINTED: too low (the taint is CONFIDENTIAL)": failure(
			codes.FailedPrecondition, "too low", reason("CONVERSATION_TAINTED"),
			&munimentv1.ConversationTainted{Taint: munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL}),
		"CONVERSATION_TAINTED: too low (the taint is 9)": failure(
			codes.FailedPrecondition, "too low", reason("CONVERSATION_TAINTED"), &munimentv1.ConversationTainted{Taint: 9}),
		"QUOTA_EXCEEDED: full (quota: items)": failure(codes.ResourceExhausted, "full",
			&errdetails.ErrorInfo{Reason: "QUOTA_EXCEEDED", Domain: "muniment.v1", Metadata: map[string]string{"quota": "items"}}),
		"OVERLOADED: later (retry after 1m1.5s)": failure(
			codes.ResourceExhausted, "later", reason("OVERLOADED"), retryAfter(61500*time.Millisecond)),
		"TAINT_CHANGED: raised (64 passages stored, 1 already there)": failure(
			codes.Aborted, "raised", reason("TAINT_CHANGED"), &munimentv1.ImportProgress{StoredCount: 64, ExistingCount: 1}),
	} {
		if err := failed(t, with); err.Error() != "muniment: "+text {
			t.Error(err)
		}
	}
}

func TestADeadlineIsThatOfContexts(t *testing.T) {
	passed := failed(t, failure(codes.DeadlineExceeded, "late", reason("DEADLINE_EXCEEDED")))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, stopped := sessionOf(t, connect(t, serve(t))).SaveMemory(canceled, saveRequest())
	other := failed(t, failure(codes.NotFound, "no such note", reason("NOTE_NOT_FOUND")))

	if !errors.Is(passed, context.DeadlineExceeded) || errors.Is(passed, context.Canceled) {
		t.Error(passed)
	}
	if !errors.Is(stopped, context.Canceled) || errors.Is(stopped, context.DeadlineExceeded) {
		t.Error(stopped)
	}
	if errors.Is(other, context.DeadlineExceeded) || errors.Is(other, context.Canceled) {
		t.Error(other)
	}
}

func TestATimeToComeAgain(t *testing.T) {
	err := failed(t, failure(codes.ResourceExhausted, "later", reason("OVERLOADED"), retryAfter(time.Second)))

	if info, found := muniment.Detail[*errdetails.RetryInfo](err); !found || info.GetRetryDelay().AsDuration() != time.Second {
		t.Error(info, found)
	}
}

func TestAReasonOfElsewhereIsNone(t *testing.T) {
	err := failed(t, failure(codes.NotFound, "no", &errdetails.ErrorInfo{Reason: "NOTE_NOT_FOUND", Domain: "example.com"}))

	if err.Error() != "muniment: NotFound: no" || muniment.ReasonOf(err) != munimentv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		t.Error(err)
	}
}

func TestAReasonThatIsNewerComesThrough(t *testing.T) {
	err := failed(t, failure(codes.NotFound, "no", reason("OF_TOMORROW")))

	var failure *muniment.Error
	if !errors.As(err, &failure) || failure.ReasonName != "OF_TOMORROW" || muniment.ReasonOf(err) != 0 {
		t.Error(err)
	}
}

func TestADamagedDetailHidesNoOther(t *testing.T) {
	damaged := failure(codes.NotFound, "no").Proto()
	damaged.Details = append(damaged.Details, &anypb.Any{TypeUrl: "type.googleapis.com/muniment.v1.Note", Value: []byte{0xff}})
	good, err := anypb.New(reason("NOTE_NOT_FOUND"))
	if err != nil {
		t.Fatal(err)
	}
	damaged.Details = append(damaged.Details, good)

	if err := failed(t, status.FromProto(damaged)); muniment.ReasonOf(err) != munimentv1.ErrorReason_ERROR_REASON_NOTE_NOT_FOUND {
		t.Error(err)
	}
}

func TestWhatDoesNotComeFromACall(t *testing.T) {
	for _, err := range []error{nil, errors.New("no call")} {
		if _, found := muniment.Detail[*errdetails.ErrorInfo](err); found || muniment.ReasonOf(err) != 0 {
			t.Error(err)
		}
	}
}

func TestATextThatIsNotUTF8IsRefusedAndNotSent(t *testing.T) {
	f := serve(t)
	session := sessionOf(t, connect(t, f))
	const text = "secret \xff"

	_, inUnary := session.SaveMemory(t.Context(), &munimentv1.SaveMemoryRequest{Key: "tea", Content: text})
	_, inStream := importAll(t.Context(), session, "tea", text)

	for _, err := range []error{inUnary, inStream} {
		if status.Code(err) != codes.InvalidArgument || err.Error() != "muniment: InvalidArgument: a text is not valid UTF-8, and cannot be sent" {
			t.Error(err)
		}
	}
	if len(f.calls("SaveMemory"))+len(f.calls("ImportPassages")) != 0 {
		t.Error("it was sent")
	}
}
