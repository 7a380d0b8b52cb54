package muniment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// requestID is that of the error.
func requestID(t *testing.T, err error) string {
	t.Helper()
	var failure *muniment.Error
	if !errors.As(err, &failure) {
		t.Fatalf("%T", err)
	}
	return failure.RequestID
}

func TestAnErrorHasTheRequestIDAndPrintsIt(t *testing.T) {
	f := serve(t)
	f.numbered = true
	f.fails("AddNote", failure(codes.NotFound, "no such agent", reason("AGENT_NOT_FOUND")))

	_, err := sessionOf(t, connect(t, f)).AddNote(t.Context(), &munimentv1.AddNoteRequest{Content: "tea"})

	if requestID(t, err) != "1" || err.Error() != "muniment: AGENT_NOT_FOUND: no such agent (request 1)" {
		t.Error(err)
	}
}

func TestARequestIDIsThatOfTheLastAttempt(t *testing.T) {
	f := serve(t)
	f.numbered = true
	f.fails("SaveMemory", unavailable, failure(codes.Aborted, "raised", reason("TAINT_CHANGED")))

	_, err := sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())

	if requestID(t, err) != "2" {
		t.Error(err)
	}
}

func TestAnImportThatFailsHasARequestID(t *testing.T) {
	f := serve(t)
	f.numbered = true
	f.fails("ImportPassages", failure(codes.Aborted, "raised", reason("TAINT_CHANGED")))

	_, err := importAll(t.Context(), sessionOf(t, connect(t, f)), "a", "b")

	if requestID(t, err) != "1" {
		t.Error(err)
	}
}

func TestWithoutAnAnswerThereIsNoRequestID(t *testing.T) {
	conn, err := muniment.Connect("127.0.0.1:1", muniment.WithoutRetries())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()

	_, err = sessionOf(t, conn).SaveMemory(ctx, saveRequest())

	if requestID(t, err) != "" {
		t.Error(err)
	}
}

// A server of version 0.1.0 sends the incident alone.
func TestAFaultIsKnownByOneID(t *testing.T) {
	info := &errdetails.ErrorInfo{Reason: "INTERNAL", Domain: "muniment.v1", Metadata: map[string]string{"incident": "1"}}
	for _, numbered := range []bool{true, false} {
		f := serve(t)
		f.numbered = numbered
		f.fails("AddNote", failure(codes.Internal, "a fault", info))

		_, err := sessionOf(t, connect(t, f)).AddNote(t.Context(), &munimentv1.AddNoteRequest{Content: "tea"})

		if err.Error() != "muniment: INTERNAL: a fault (request 1)" {
			t.Error(err)
		}
	}
}
