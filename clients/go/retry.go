package muniment

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// Pauses double from the first up to the longest, less up to half by chance, so that clients do not come back all at
// once. A server that names a time is given that time on top. The longest pause bounds what the clients of a server
// that is away or overloaded send: at most one attempt per call in one to two seconds.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// mayRepeat reports whether a request may be sent again if it is unknown whether it was executed: as the contract says
// of its method.
//
// Never with an etag: if the first attempt was executed, the etag is stale.
func mayRepeat(method string, request any) bool {
	if !mayBeRepeated(method) {
		return false
	}
	switch request := request.(type) {
	// What is added under an id of the caller's is added once.
	case *munimentv1.AddNoteRequest:
		return request.GetNoteId() != ""
	case *munimentv1.StorePassageRequest:
		return request.GetPassageId() != ""
	case *munimentv1.EditNotesRequest:
		return request.GetValidateOnly() || onlyAdds(request.GetEdits())
	// As for SaveMemory: not if any of the memories has an etag.
	case *munimentv1.SaveMemoriesRequest:
		return !slices.ContainsFunc(request.GetMemories(), hasEtag)
	case interface{ GetEtag() string }:
		return request.GetEtag() == ""
	}
	return true
}

func hasEtag(memory *munimentv1.SaveMemoryRequest) bool {
	return memory.GetEtag() != ""
}

// onlyAdds says whether all edits add under ids of the caller's. A note whose content is there already is not added,
// but would be the second time if a later edit has changed that content: hence all.
func onlyAdds(edits []*munimentv1.NoteEdit) bool {
	for _, edit := range edits {
		if edit.GetAdd().GetNoteId() == "" {
			return false
		}
	}
	return true
}

// mayBeRepeated is what the contract says of a method such as /muniment.v1.MemoryService/GetMemory.
func mayBeRepeated(method string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	declared, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return false
	}
	policy, _ := proto.GetExtension(declared.Options(), munimentv1.E_Policy).(*munimentv1.MethodPolicy)
	return policy.GetMayBeRepeated()
}

// repeat makes an attempt until it succeeds, or another one is not allowed, or the deadline would pass in the pause.
func repeat(ctx context.Context, attempt func() (again bool, err error)) error {
	for longest := firstPause; ; longest = min(2*longest, longestPause) {
		again, err := attempt()
		if !again {
			return err
		}
		pause := longest/2 + rand.N(longest/2) + retryDelay(err)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= pause {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errorOf(status.FromContextError(ctx.Err()).Err(), nil)
		}
	}
}

// passes says whether the same call may succeed a little later.
func passes(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable:
		var failure *Error
		return !errors.As(err, &failure) || !lasting.MatchString(failure.Message)
	case codes.ResourceExhausted:
		_, found := Detail[*errdetails.RetryInfo](err)
		return found
	default:
		return false
	}
}

// retryDelay is the time after which the server asks to be tried again, and never negative.
func retryDelay(err error) time.Duration {
	info, _ := Detail[*errdetails.RetryInfo](err)
	return max(0, info.GetRetryDelay().AsDuration())
}
