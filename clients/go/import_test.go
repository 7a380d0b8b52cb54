package muniment_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

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

// It has not been canceled here.
func TestAnImportThatTheServerBreaksOffIsUnavailable(t *testing.T) {
	f := serve(t)
	f.fails("ImportPassages", failure(codes.Canceled, ""))

	_, err := importAll(t.Context(), sessionOf(t, connect(t, f)), "a")

	if made := len(f.calls("ImportPassages")); made != 1 || status.Code(err) != codes.Unavailable {
		t.Error(made, err)
	}
}

func TestAnImportOfPassagesWithIDsIsMadeAgain(t *testing.T) {
	f := serve(t)
	f.fails("ImportPassages", overloaded, unavailable, failure(codes.Canceled, ""))
	f.replies["ImportPassages"] = &munimentv1.ImportPassagesResponse{StoredCount: 1}
	passage := &munimentv1.StorePassageRequest{PassageId: noteID, Content: "a"}

	stored, err := sessionOf(t, connect(t, f)).ImportAll(t.Context(), []*munimentv1.StorePassageRequest{passage})

	if err != nil || stored.GetStoredCount() != 1 {
		t.Fatal(stored, err)
	}
	made := f.calls("ImportPassages")
	if len(made) != 4 {
		t.Fatal(len(made))
	}
	for _, heard := range made {
		want := &munimentv1.ImportPassagesRequest{Passage: passage}
		if len(heard.requests) != 1 || !proto.Equal(heard.requests[0], want) {
			t.Errorf("%+v", heard)
		}
	}
}

func TestAnImportIsNotMadeAgainWithoutIDsOrRetries(t *testing.T) {
	with, without := &munimentv1.StorePassageRequest{PassageId: noteID}, &munimentv1.StorePassageRequest{}
	check := func(passages []*munimentv1.StorePassageRequest, options ...muniment.Option) {
		t.Helper()
		f := serve(t)
		f.fails("ImportPassages", overloaded)

		_, err := sessionOf(t, connect(t, f, options...)).ImportAll(t.Context(), passages)

		if made := len(f.calls("ImportPassages")); made != 1 || status.Code(err) != codes.ResourceExhausted {
			t.Error(made, err)
		}
	}
	check([]*munimentv1.StorePassageRequest{with, without})
	check([]*munimentv1.StorePassageRequest{with}, muniment.WithoutRetries())
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
