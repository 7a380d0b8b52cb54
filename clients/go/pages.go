package muniment

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// mostRaises is how often a conversation can be raised: three times to a higher level, once to UNTRUSTED.
const mostRaises = 4

// AllMemories returns the memories of ListMemories, from its first page to its last. Pages are requested as the loop
// goes on, and the deadline of ctx, if it has one, is that of all of them. Each new loop begins a new list.
//
// After an error the loop ends. If a host raises the taint between two pages, it is TAINT_CHANGED, and the
// list is incomplete: see [Collect].
func (s *Session) AllMemories(
	ctx context.Context, request *munimentv1.ListMemoriesRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Memory, error] {
	return each(ctx, s.ListMemories, request, (*munimentv1.ListMemoriesResponse).GetMemories, options)
}

// AllNotes returns the notes of ListNotes, in the way of [Session.AllMemories].
func (s *Session) AllNotes(
	ctx context.Context, request *munimentv1.ListNotesRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Note, error] {
	return each(ctx, s.ListNotes, request, (*munimentv1.ListNotesResponse).GetNotes, options)
}

// AllBlocks returns the blocks of ListBlocks, in the way of [Session.AllMemories].
func (s *Session) AllBlocks(
	ctx context.Context, request *munimentv1.ListBlocksRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Block, error] {
	return each(ctx, s.ListBlocks, request, (*munimentv1.ListBlocksResponse).GetBlocks, options)
}

// AllPassages returns the passages of ListPassages, in the way of [Session.AllMemories].
func (s *Session) AllPassages(
	ctx context.Context, request *munimentv1.ListPassagesRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Passage, error] {
	return each(ctx, s.ListPassages, request, (*munimentv1.ListPassagesResponse).GetPassages, options)
}

// AllVersions returns the versions of ListVersions, in the way of [Session.AllMemories].
func (s *Session) AllVersions(
	ctx context.Context, request *munimentv1.ListVersionsRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.ItemVersion, error] {
	return each(ctx, s.ListVersions, request, (*munimentv1.ListVersionsResponse).GetVersions, options)
}

// AllAgents returns the agents of ListAgents, from its first page to its last. Pages are requested as the loop goes on.
// After an error the loop ends.
func (h *Host) AllAgents(
	ctx context.Context, request *munimentv1.ListAgentsRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Agent, error] {
	return each(ctx, h.ListAgents, request, (*munimentv1.ListAgentsResponse).GetAgents, options)
}

// AllSessions returns the sessions of ListSessions, in the way of [Host.AllAgents].
func (h *Host) AllSessions(
	ctx context.Context, request *munimentv1.ListSessionsRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Session, error] {
	return each(ctx, h.ListSessions, request, (*munimentv1.ListSessionsResponse).GetSessions, options)
}

// AllAuditEvents returns the events of ListAuditEvents, in the way of [Host.AllAgents].
func (h *Host) AllAuditEvents(
	ctx context.Context, request *munimentv1.ListAuditEventsRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.AuditEvent, error] {
	return each(ctx, h.ListAuditEvents, request, (*munimentv1.ListAuditEventsResponse).GetAuditEvents, options)
}

// AllReleases returns the releases of ListReleases, in the way of [Host.AllAgents].
func (h *Host) AllReleases(
	ctx context.Context, request *munimentv1.ListReleasesRequest, options ...grpc.CallOption,
) iter.Seq2[*munimentv1.Release, error] {
	return each(ctx, h.ListReleases, request, (*munimentv1.ListReleasesResponse).GetReleases, options)
}

// AllBlockConsumers returns the ids of ListBlockConsumers, in the way of [Host.AllAgents].
func (h *Host) AllBlockConsumers(
	ctx context.Context, request *munimentv1.ListBlockConsumersRequest, options ...grpc.CallOption,
) iter.Seq2[string, error] {
	return each(ctx, h.ListBlockConsumers, request, (*munimentv1.ListBlockConsumersResponse).GetAgentIds, options)
}

// A page is the response of a list.
type page interface{ GetNextPageToken() string }

// each follows the pages of a list, beginning with the one that the request asks for.
func each[Request proto.Message, Page page, Item any](
	ctx context.Context,
	list func(context.Context, Request, ...grpc.CallOption) (Page, error),
	request Request,
	items func(Page) []Item,
	options []grpc.CallOption,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		next := request.ProtoReflect().New()
		proto.Merge(next.Interface(), request)
		for more := true; more; {
			answer, err := list(ctx, next.Interface().(Request), options...)
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items(answer) {
				if !yield(item, nil) {
					return
				}
			}
			token := answer.GetNextPageToken()
			next.Set(next.Descriptor().Fields().ByName("page_token"), protoreflect.ValueOfString(token))
			more = token != ""
		}
	}
}

// A CollectOption changes how [Collect] reads a list.
type CollectOption func(*collecting)

type collecting struct{ restarts int }

// RestartOnTaintChange makes [Collect] read the list again from its start if the taint is raised between two pages.
func RestartOnTaintChange() CollectOption {
	return func(c *collecting) { c.restarts = mostRaises }
}

// Collect returns the whole of a list such as [Session.AllMemories], all pages of it read at one taint.
//
// If a host raises the taint between two pages, Collect fails with TAINT_CHANGED, because what has been read may be
// shadowed now, and more may be visible. With [RestartOnTaintChange] it discards what it has read and begins anew, which
// happens at most four times. The result may then be classified higher than the taint was when Collect was called.
// If it returns an error, it returns no items.
func Collect[Item any](list iter.Seq2[Item, error], options ...CollectOption) ([]Item, error) {
	var how collecting
	for _, apply := range options {
		apply(&how)
	}
	for restarts := 0; ; restarts++ {
		items, err := collect(list)
		raised := ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED
		if !raised || restarts == how.restarts {
			return items, err
		}
	}
}

func collect[Item any](list iter.Seq2[Item, error]) ([]Item, error) {
	var items []Item
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
