package muniment_test

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A pagedList lists keys, one on each page. Its tokens are worth nothing after the next raise, of which the first comes
// after the first page of a list.
type pagedList struct {
	keys          []string
	taint, raises int
}

func (s *pagedList) list(request proto.Message) (proto.Message, *status.Status) {
	index, taint := 0, s.taint
	if token := request.(*munimentv1.ListMemoriesRequest).GetPageToken(); token != "" {
		issued, page, _ := strings.Cut(token, ".")
		taint, _ = strconv.Atoi(issued)
		index, _ = strconv.Atoi(page)
	}
	if taint != s.taint {
		return nil, failure(codes.Aborted, "the taint was raised meanwhile", reason("TAINT_CHANGED"))
	}
	response := &munimentv1.ListMemoriesResponse{Memories: []*munimentv1.Memory{{Key: s.keys[index]}}}
	if index+1 < len(s.keys) {
		response.NextPageToken = strconv.Itoa(taint) + "." + strconv.Itoa(index+1)
	}
	if s.raises > 0 {
		s.raises--
		s.taint++
	}
	return response, nil
}

var abc = []string{"a", "b", "c"}

func serveList(t *testing.T, raises int) (*fake, iter.Seq2[*munimentv1.Memory, error]) {
	t.Helper()
	f := serve(t)
	f.answers["ListMemories"] = (&pagedList{keys: abc, raises: raises}).list
	return f, sessionOf(t, connect(t, f)).AllMemories(t.Context(), &munimentv1.ListMemoriesRequest{Tag: "taste"})
}

func keysOf(memories []*munimentv1.Memory) (keys []string) {
	for _, memory := range memories {
		keys = append(keys, memory.GetKey())
	}
	return keys
}

func TestAListGoesOnToItsLastPage(t *testing.T) {
	f, list := serveList(t, 0)
	for range 2 { // Each loop begins a new list.
		var keys []string
		for memory, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, memory.GetKey())
		}
		if !slices.Equal(keys, abc) {
			t.Error(keys)
		}
	}

	for i, each := range f.calls("ListMemories") {
		request := each.requests[0].(*munimentv1.ListMemoriesRequest)
		if request.GetTag() != "taste" || (request.GetPageToken() == "") != (i%3 == 0) {
			t.Errorf("%d: %v", i, request)
		}
	}
}

func TestPagesAreRequestedAsTheLoopGoesOn(t *testing.T) {
	f, list := serveList(t, 0)
	for range list {
		break
	}
	if calls := len(f.calls("ListMemories")); calls != 1 {
		t.Error(calls)
	}
}

func TestARequestOfAListIsNotChangedAndMayBeNil(t *testing.T) {
	f := serve(t)
	f.answers["ListMemories"] = (&pagedList{keys: abc}).list
	session, request := sessionOf(t, connect(t, f)), &munimentv1.ListMemoriesRequest{}
	for _, each := range []*munimentv1.ListMemoriesRequest{request, nil} {
		if memories, err := muniment.Collect(session.AllMemories(t.Context(), each)); err != nil || len(memories) != 3 {
			t.Error(memories, err)
		}
	}
	if request.GetPageToken() != "" {
		t.Error(request)
	}
}

func TestALoopThatTheTaintOvertakesEndsWithTaintChanged(t *testing.T) {
	_, list := serveList(t, 1)
	var keys []string
	var last error
	for memory, err := range list {
		if last = err; err == nil {
			keys = append(keys, memory.GetKey())
		}
	}
	if !slices.Equal(keys, []string{"a"}) || !isTaintChanged(last) {
		t.Error(keys, last)
	}
}

func TestCollectFailsOrBeginsAnew(t *testing.T) {
	_, list := serveList(t, 1)
	if memories, err := muniment.Collect(list); memories != nil || !isTaintChanged(err) {
		t.Error(memories, err)
	}
	for _, raises := range []int{0, 1, 4} {
		_, list := serveList(t, raises)
		memories, err := muniment.Collect(list, muniment.RestartOnTaintChange())
		if err != nil || !slices.Equal(keysOf(memories), abc) {
			t.Error(raises, memories, err)
		}
	}
}

func TestCollectBeginsAnewFourTimesAtMostAndForNothingElse(t *testing.T) {
	f, list := serveList(t, 1000)
	if _, err := muniment.Collect(list, muniment.RestartOnTaintChange()); !isTaintChanged(err) {
		t.Error(err)
	}
	if calls := len(f.calls("ListMemories")); calls != 10 {
		t.Error(calls)
	}

	f, list = serveList(t, 0)
	f.fails("ListMemories", failure(codes.Aborted, "other", reason("ETAG_STALE")))
	if _, err := muniment.Collect(list, muniment.RestartOnTaintChange()); err == nil || len(f.calls("ListMemories")) != 1 {
		t.Error(err)
	}
}

func isTaintChanged(err error) bool {
	return muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED
}

// Whatever comes in pages can be read whole by each that may list it.
func TestEveryListHasItsPager(t *testing.T) {
	f := serve(t)
	conn := connect(t, f)
	for principal, holder := range map[munimentv1.Principal]reflect.Value{
		munimentv1.Principal_PRINCIPAL_HOST:    reflect.ValueOf(hostOf(t, conn)),
		munimentv1.Principal_PRINCIPAL_SESSION: reflect.ValueOf(sessionOf(t, conn)),
	} {
		for _, method := range methods() {
			policy := proto.GetExtension(method.Options(), munimentv1.E_Policy).(*munimentv1.MethodPolicy)
			if method.Output().Fields().ByName("next_page_token") == nil || !slices.Contains(policy.GetPrincipals(), principal) {
				continue
			}
			f.replies[string(method.Name())] = twoItems(method.Output())
			pager := holder.MethodByName("All" + strings.TrimPrefix(string(method.Name()), "List"))
			list := pager.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(newMessage(method.Input()))})[0]
			count := 0
			for _, err := range list.Seq2() {
				if count++; !err.IsNil() {
					t.Error(method.Name(), err)
				}
			}
			if count != 2 {
				t.Errorf("%s: %d items", method.Name(), count)
			}
		}
	}
}

// twoItems is a page with two items and without a next one.
func twoItems(page protoreflect.MessageDescriptor) proto.Message {
	made := newMessage(page)
	fields := page.Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); field.IsList() {
			list := made.ProtoReflect().Mutable(field).List()
			list.Append(list.NewElement())
			list.Append(list.NewElement())
		}
	}
	return made
}

func TestADeadlineIsThatOfTheWholeList(t *testing.T) {
	f := serve(t)
	f.answers["ListMemories"] = (&pagedList{keys: abc}).list
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := muniment.Collect(sessionOf(t, connect(t, f)).AllMemories(ctx, nil)); err != nil {
		t.Fatal(err)
	}
	for _, each := range f.calls("ListMemories") {
		if each.left < 50*time.Second {
			t.Error(each.left)
		}
	}
}
