package muniment_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

func importAll(ctx context.Context, session *muniment.Session, contents ...string) (*munimentv1.ImportPassagesResponse, error) {
	stream, err := session.ImportPassages(ctx)
	if err != nil {
		return nil, err
	}
	for _, content := range contents {
		passage := &munimentv1.StorePassageRequest{Content: content}
		if stream.Send(&munimentv1.ImportPassagesRequest{Passage: passage}) != nil {
			break // CloseAndRecv says why.
		}
	}
	return stream.CloseAndRecv()
}

func TestAnImport(t *testing.T) {
	f := serve(t)
	f.replies["ImportPassages"] = &munimentv1.ImportPassagesResponse{StoredCount: 2}

	stored, err := importAll(t.Context(), sessionOf(t, connect(t, f)), "a", "b")

	if err != nil || stored.GetStoredCount() != 2 {
		t.Fatal(stored, err)
	}
	heard := f.calls("ImportPassages")[0]
	if len(heard.requests) != 2 || heard.authorization[0] != "Bearer "+token || heard.left > 10*time.Second || heard.left < 5*time.Second {
		t.Errorf("%+v", heard)
	}
}

func TestAnImportThatFailsSaysHowFarItCame(t *testing.T) {
	f := serve(t)
	f.fails("ImportPassages", failure(codes.Aborted, "raised", reason("TAINT_CHANGED"), &munimentv1.ImportProgress{StoredCount: 1}))

	_, err := importAll(t.Context(), sessionOf(t, connect(t, f)), "a", "b")

	progress, found := muniment.Detail[*munimentv1.ImportProgress](err)
	if !found || progress.GetStoredCount() != 1 || muniment.ReasonOf(err) != munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED {
		t.Error(err)
	}
}

func TestAnImportIsMadeOnce(t *testing.T) {
	f := serve(t)
	f.fails("ImportPassages", unavailable)

	_, err := importAll(t.Context(), sessionOf(t, connect(t, f)), "a")

	if made := len(f.calls("ImportPassages")); made != 1 || status.Code(err) != codes.Unavailable {
		t.Error(made, err)
	}
}

func TestAnImportThatWasGivenUpIsNoWholeOne(t *testing.T) {
	f := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := sessionOf(t, connect(t, f)).ImportPassages(ctx)
	if err != nil {
		t.Fatal(err)
	}

	_ = stream.Send(&munimentv1.ImportPassagesRequest{})
	cancel()
	_, err = stream.CloseAndRecv()

	if status.Code(err) != codes.Canceled || len(f.calls("ImportPassages")) != 0 {
		t.Error(err)
	}
}
