package muniment_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

var (
	unavailable = failure(codes.Unavailable, "away", &errdetails.ErrorInfo{Reason: "UNAVAILABLE", Domain: "muniment.v1"})
	overloaded  = failure(codes.ResourceExhausted, "too many calls",
		&errdetails.ErrorInfo{Reason: "OVERLOADED", Domain: "muniment.v1"}, retryAfter(time.Millisecond))
)

func retryAfter(delay time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}
}

// What the contract lets clients repeat only with an id, which the requests below do not have.
var onlyWithID = []string{"AddNote", "EditNotes", "StorePassage"}

func TestOnlyWhatIsSafeIsSentAgain(t *testing.T) {
	t.Parallel()
	for full, method := range methods() {
		name := string(method.Name())
		if method.IsStreamingClient() {
			continue
		}
		request := newMessage(method.Input())
		if name == "EditNotes" {
			request = &munimentv1.EditNotesRequest{Edits: []*munimentv1.NoteEdit{adds("")}}
		}
		policy := proto.GetExtension(method.Options(), munimentv1.E_Policy).(*munimentv1.MethodPolicy)
		checkAttempts(t, full, request, !policy.GetMayBeRepeated() || slices.Contains(onlyWithID, name))
	}
}

func TestWhatHasAnIDIsAddedOnce(t *testing.T) {
	t.Parallel()
	edits := func(edits ...*munimentv1.NoteEdit) *munimentv1.EditNotesRequest {
		return &munimentv1.EditNotesRequest{Edits: edits}
	}
	update := &munimentv1.NoteEdit{Edit: &munimentv1.NoteEdit_Update{Update: &munimentv1.UpdateNoteEdit{NoteId: noteID}}}
	const editNotes = munimentv1.NoteService_EditNotes_FullMethodName

	checkAttempts(t, munimentv1.NoteService_AddNote_FullMethodName, &munimentv1.AddNoteRequest{NoteId: noteID}, false)
	checkAttempts(t, munimentv1.PassageService_StorePassage_FullMethodName, &munimentv1.StorePassageRequest{PassageId: noteID}, false)
	checkAttempts(t, editNotes, edits(adds(noteID)), false)
	checkAttempts(t, editNotes, edits(adds(noteID), adds("")), true)
	checkAttempts(t, editNotes, edits(adds(noteID), update), true)
	checkAttempts(t, editNotes, &munimentv1.EditNotesRequest{Edits: []*munimentv1.NoteEdit{update}, ValidateOnly: true}, false)
}

func TestAnEtagIsSentOnce(t *testing.T) {
	t.Parallel()
	checkAttempts(t, munimentv1.MemoryService_SaveMemory_FullMethodName, &munimentv1.SaveMemoryRequest{Etag: "e"}, true)
	checkAttempts(t, munimentv1.NoteService_UpdateNote_FullMethodName, &munimentv1.UpdateNoteRequest{Etag: "e"}, true)
	checkAttempts(t, munimentv1.BlockService_UpdateBlock_FullMethodName, &munimentv1.UpdateBlockRequest{Etag: "e"}, true)
}

func adds(id string) *munimentv1.NoteEdit {
	return &munimentv1.NoteEdit{Edit: &munimentv1.NoteEdit_Add{Add: &munimentv1.AddNoteEdit{NoteId: id}}}
}

// checkAttempts makes a call of which the first attempt fails, in both ways in which a second could succeed.
func checkAttempts(t *testing.T, method string, request proto.Message, once bool) {
	t.Helper()
	name := string(methodOf(method).Name())
	for _, passing := range []*status.Status{unavailable, overloaded} {
		t.Run(name+" "+passing.Code().String(), func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.fails(name, passing)

			err := connect(t, f).Invoke(t.Context(), method, request, newMessage(methodOf(method).Output()))

			if calls := f.calls(name); once && (len(calls) != 1 || status.Code(err) != passing.Code()) {
				t.Errorf("%d attempts: %v", len(calls), err)
			} else if !once && (len(calls) != 2 || err != nil || !proto.Equal(calls[0].requests[0], calls[1].requests[0])) {
				t.Errorf("%d attempts: %v", len(calls), err)
			}
		})
	}
}

// The deadline may cut off the last attempt, if hardly any time was left: then the call is made once more.
func TestACallIsRepeatedUntilItsDeadlineIsNear(t *testing.T) {
	t.Parallel()
	var err error
	for range 3 {
		f := serve(t)
		f.fails("SaveMemory", slices.Repeat([]*status.Status{unavailable}, 99)...)

		_, err = sessionOf(t, connect(t, f, muniment.WithTimeout(6*time.Second))).SaveMemory(t.Context(), saveRequest())

		if made := len(f.calls("SaveMemory")); made < 5 || made > 10 {
			t.Errorf("%d: %v", made, err)
		}
		if status.Code(err) != codes.DeadlineExceeded {
			break
		}
	}
	if status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

func TestWithoutRetriesACallIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.fails("SaveMemory", unavailable)

	_, err := sessionOf(t, connect(t, f, muniment.WithoutRetries())).SaveMemory(t.Context(), saveRequest())

	if made := len(f.calls("SaveMemory")); made != 1 || status.Code(err) != codes.Unavailable {
		t.Errorf("%d: %v", made, err)
	}
}

// Nothing was sent, so that every call may be made again.
func TestACallWaitsForAServerThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket") // a port could be given to another test meanwhile
	address := "unix:" + path
	host := hostOf(t, connect(t, &fake{address: address}))
	came := make(chan error)
	go func() {
		_, err := host.CreateAgent(t.Context(), &munimentv1.CreateAgentRequest{AgentId: "ada"})
		came <- err
	}()
	time.Sleep(600 * time.Millisecond)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	f := serveOn(t, listener, address)

	if err := <-came; err != nil || len(f.calls("CreateAgent")) != 1 {
		t.Error(len(f.calls("CreateAgent")), err)
	}
}

// The connection breaks after the call was sent: nobody knows what became of it.
func TestWhatWasLostOnItsWayIsNotSentAgain(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var lost atomic.Int32
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			lose(connection, &lost)
		}
	}()

	_, err = hostOf(t, connect(t, &fake{address: listener.Addr().String()})).
		CreateAgent(t.Context(), &munimentv1.CreateAgentRequest{AgentId: "ada"})

	if status.Code(err) != codes.Unavailable || lost.Load() != 1 {
		t.Error(lost.Load(), err)
	}
}

// lose begins as HTTP/2 does, with empty settings, and breaks off when it has the agent's id. It counts the call before
// it breaks off: once it has, the client may return before the count has grown.
func lose(connection net.Conn, lost *atomic.Int32) {
	defer connection.Close()
	_, _ = connection.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0})
	var got []byte
	for !bytes.Contains(got, []byte("\x0a\x03ada")) {
		part := make([]byte, 4096)
		length, err := connection.Read(part)
		if err != nil {
			return
		}
		got = append(got, part[:length]...)
	}
	lost.Add(1)
}

// It has not been canceled here, so nobody knows what became of it.
func TestACallThatTheServerBreaksOffIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.fails("SaveMemory", failure(codes.Canceled, ""))
	f.fails("DeleteMemory", failure(codes.Canceled, ""))
	session := sessionOf(t, connect(t, f))

	_, saved := session.SaveMemory(t.Context(), saveRequest())
	_, deleted := session.DeleteMemory(t.Context(), &munimentv1.DeleteMemoryRequest{Key: "tea"})

	if saves := len(f.calls("SaveMemory")); saves != 2 || saved != nil {
		t.Error(saves, saved)
	}
	if deletes := len(f.calls("DeleteMemory")); deletes != 1 || status.Code(deleted) != codes.Unavailable {
		t.Error(deletes, deleted)
	}
}

func TestWhatCannotSucceedIsSentOnce(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for _, code := range []codes.Code{codes.Internal, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded} {
		f.fails("SaveMemory", failure(code, "no"))
		before := len(f.calls("SaveMemory"))

		_, err := sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())

		if made := len(f.calls("SaveMemory")) - before; made != 1 || status.Code(err) != code {
			t.Errorf("%v: %d: %v", code, made, err)
		}
	}
}

func TestTheServersTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.fails("SaveMemory", failure(codes.Unavailable, "away", retryAfter(300*time.Millisecond)))
	started := time.Now()

	_, err := sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())

	if waited := time.Since(started); err != nil || waited < 300*time.Millisecond {
		t.Error(waited, err)
	}
}

func TestNoPauseRunsPastTheDeadline(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.fails("SaveMemory", failure(codes.Unavailable, "away", retryAfter(time.Hour)))
	started := time.Now()

	_, err := sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())

	if waited := time.Since(started); status.Code(err) != codes.Unavailable || waited > 5*time.Second {
		t.Error(waited, err)
	}
}

func TestACanceledPauseIsOver(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.fails("SaveMemory", failure(codes.Unavailable, "away", retryAfter(5*time.Second)))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	started := time.Now()

	_, err := sessionOf(t, connect(t, f)).SaveMemory(ctx, saveRequest())

	if waited := time.Since(started); status.Code(err) != codes.Canceled || waited > 4*time.Second {
		t.Error(waited, err)
	}
}

func TestAgedConnectionsAreNotNoticed(t *testing.T) {
	t.Parallel()
	f := serve(t, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond}))
	session := sessionOf(t, connect(t, f, muniment.WithoutRetries()))
	for started := time.Now(); time.Since(started) < 500*time.Millisecond; {
		if _, err := session.SaveMemory(t.Context(), saveRequest()); err != nil {
			t.Fatal(err)
		}
	}
}
