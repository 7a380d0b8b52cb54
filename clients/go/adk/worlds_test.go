package adk_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
)

// calls are those of one session. What is stored has the text in it.
func calls(ctx context.Context, service memory.Service, text string) []func() any {
	add := func(id string) func() any {
		return func() any { return service.AddSessionToMemory(ctx, conversation(id, "ada", "Assam", text+" sugar")) }
	}
	search := func(query, user string) func() any {
		return func() any {
			response, err := service.SearchMemory(ctx, &memory.SearchRequest{AppName: "tea", UserID: user, Query: query})
			if err != nil {
				return muniment.ReasonOf(err)
			}
			seen := []any{}
			for _, entry := range response.Memories {
				seen = append(seen, entry.ID, entry.Content.Parts[0].Text, entry.Author, entry.Timestamp)
			}
			return seen
		}
	}
	return []func() any{
		search("sugar", "ada"), add("one"), search("sugar", "ada"), add(text), search("Assam", "ada"), add("one"),
		search("high low sugar", "ada"), search("sugar", "bob"),
	}
}

// seenBelow is what a PUBLIC session sees, while one above makes the same calls in between, or does not.
func seenBelow(t *testing.T, made func(*muniment.Session) memory.Service, above bool) []any {
	t.Helper()
	opened := someone(t)
	low := calls(t.Context(), made(opened(public)), "low")
	var high []func() any
	if above {
		high = calls(t.Context(), made(opened(confidential)), "high")
	}
	seen := []any{}
	for number, call := range low {
		if above {
			high[number]()
		}
		seen = append(seen, call())
	}
	return seen
}

func TestWhatHappensAboveChangesNothingBelow(t *testing.T) {
	made := func(session *muniment.Session) memory.Service { return adk.NewMemoryService(session) }
	alone := seenBelow(t, made, false)
	if len(alone[6].([]any)) == 0 {
		t.Error("nothing was found")
	}
	if beside := seenBelow(t, made, true); !reflect.DeepEqual(beside, alone) {
		t.Errorf("beside %q, alone %q", fmt.Sprint(beside), fmt.Sprint(alone))
	}
}

// newest is a broken service: all of the process use the session of the newest.
type newest struct{}

var shared memory.Service

func (newest) AddSessionToMemory(ctx context.Context, added session.Session) error {
	return shared.AddSessionToMemory(ctx, added)
}

func (newest) SearchMemory(ctx context.Context, request *memory.SearchRequest) (*memory.SearchResponse, error) {
	return shared.SearchMemory(ctx, request)
}

func TestAnAdapterThatSharesItsSessionWouldShow(t *testing.T) {
	made := func(session *muniment.Session) memory.Service {
		shared = adk.NewMemoryService(session)
		return newest{}
	}
	if alone := seenBelow(t, made, false); reflect.DeepEqual(seenBelow(t, made, true), alone) {
		t.Error("the leak was not found")
	}
}
