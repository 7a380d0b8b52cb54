// Package adk has a memory service for Google's ADK.
//
// An event with text is a passage: the text of its parts, the author, the time, the ADK session as its thread, and a tag
// for application and user. So a session that is added again is stored once. The tag begins with "muniment:", which no
// tool lets a model write: a passage that a model stores is no event.
//
// No model names a level or an agent. Memories above the taint do not exist. What ADK for Python deleted stays deleted,
// also if its ADK session is added again; ADK for Go has no way to delete a memory. A search returns the ten best
// matches, among them what was said right before and after one. Custom metadata is not stored.
package adk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const (
	maxResults     = 10
	maxPageSize    = 250
	maxQueryChars  = 1024
	maxAuthorChars = 256
	maxPassageSize = 256 * 1024 // in bytes
	// How often a conversation can be raised: three times to a higher level, once to UNTRUSTED.
	mostRaises = 4
	// How long a session for one call stays open if closing it fails: longer than any import takes, even when it is
	// repeated.
	sessionTTL = time.Hour
	// Begins the keys and tags by which adapters find their items. No tool lets a model write an item with such a name.
	reserved = "muniment:"
	// The key of the memory that records a deletion begins with it.
	deletedPrefix = reserved + "adk-deleted/"
)

// ids is the namespace of the ids of events, the same as in every language's adapter.
var ids = uuid.MustParse("5f0c61a4-5b5c-4c9c-9d54-0d4a6c3f2b1e")

// A MemoryService is a [memory.Service]. It may be used by several goroutines.
type MemoryService struct {
	// with makes a call with the session of an application's user. If the user has no agent, it first creates one if stores
	// is true; otherwise it returns nil without calling.
	with func(ctx context.Context, whose owner, stores bool, call func(*muniment.Session) error) error
}

var _ memory.Service = (*MemoryService)(nil)

// NewMemoryService returns the memory of one conversation, whose taint the host raises as usual: that of its agent, up to
// the session's taint. Memories of each application and user are kept apart. It does not close the session, and
// panics if that is nil.
func NewMemoryService(session *muniment.Session) *MemoryService {
	if session == nil {
		panic("adk: NewMemoryService needs a session, but it is nil")
	}
	return &MemoryService{func(_ context.Context, _ owner, _ bool, call func(*muniment.Session) error) error {
		return call(session)
	}}
}

// NewSharedMemoryService returns the memory of an application, at one level, with an agent for each of its users.
//
// It opens a session for each call, because ADK does not say to which conversation a call belongs. So it is right for an
// application all of whose conversations are at that level; where a conversation may rise, give each a service of its
// own by [NewMemoryService]. A user's agent is created when something is stored for the user for the first time.
// It panics if host is nil.
func NewSharedMemoryService(host *muniment.Host, level munimentv1.Classification) *MemoryService {
	if host == nil {
		panic("adk: NewSharedMemoryService needs a host, but it is nil")
	}
	return &MemoryService{func(ctx context.Context, whose owner, stores bool, call func(*muniment.Session) error) error {
		request := &munimentv1.OpenSessionRequest{AgentId: whose.agent(), Taint: level, Ttl: durationpb.New(sessionTTL)}
		opened, err := host.OpenSession(ctx, request)
		if muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND {
			if !stores {
				return nil
			}
			if err := create(ctx, host, whose); err != nil {
				return err
			}
			opened, err = host.OpenSession(ctx, request)
		}
		if err != nil {
			return err
		}
		err = call(opened)
		// A failed close does not change the result of the call. The session expires by itself.
		_, _ = opened.CloseSession(context.WithoutCancel(ctx), &munimentv1.CloseSessionRequest{})
		return err
	}}
}

// create creates the owner's agent, unless it has been created meanwhile. It is only for a user who has no agent, because
// CreateAgent locks the limits of the tenant.
func create(ctx context.Context, host *muniment.Host, whose owner) error {
	_, err := host.CreateAgent(ctx, &munimentv1.CreateAgentRequest{AgentId: whose.agent(), DisplayName: whose.app})
	if muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_AGENT_EXISTS {
		return nil
	}
	return err
}

// AddSessionToMemory stores the events of an ADK session that have text and are not stored yet. If some have more than
// 256 KiB of text, the others are stored, and it returns an error.
func (m *MemoryService) AddSessionToMemory(ctx context.Context, added session.Session) error {
	whose := owner{added.AppName(), added.UserID()}
	var passages []*munimentv1.StorePassageRequest
	tooLong := 0
	for event := range added.Events().All() {
		switch text := textOf(event.Content); {
		case len(text) > maxPassageSize:
			tooLong++
		case text != "":
			passages = append(passages, passageOf(whose, added.ID(), event, text))
		}
	}
	if err := m.add(ctx, whose, passages); err != nil {
		return err
	}
	if tooLong > 0 {
		return fmt.Errorf("events with more than 256 KiB of text were not stored: %d. All others were", tooLong)
	}
	return nil
}

func (m *MemoryService) add(ctx context.Context, whose owner, passages []*munimentv1.StorePassageRequest) error {
	if len(passages) == 0 {
		return nil
	}
	return m.with(ctx, whose, true, func(session *muniment.Session) error {
		for restarts := 0; ; restarts++ {
			// They have ids: if the taint is raised meanwhile, those that are stored already are not stored again.
			err := addOnce(ctx, session, passages)
			raised := muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED
			if !raised || restarts == mostRaises {
				return err
			}
		}
	})
}

func addOnce(ctx context.Context, session *muniment.Session, passages []*munimentv1.StorePassageRequest) error {
	deleted, err := deletedFrom(ctx, session)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(passages), func(passage *munimentv1.StorePassageRequest) bool {
		return deleted[passage.GetPassageId()]
	})
	_, err = session.ImportAll(ctx, wanted)
	return err
}

// SearchMemory returns the ten memories that match best.
func (m *MemoryService) SearchMemory(ctx context.Context, request *memory.SearchRequest) (*memory.SearchResponse, error) {
	whose := owner{request.AppName, request.UserID}
	response := &memory.SearchResponse{}
	query := first(maxQueryChars, strings.TrimSpace(storable(request.Query)))
	if query == "" {
		return response, nil
	}
	err := m.with(ctx, whose, false, func(session *muniment.Session) error {
		found, err := session.SearchPassages(ctx, &munimentv1.SearchPassagesRequest{
			Query: query, Tags: []string{whose.tag()}, MaxResults: maxResults,
		})
		for _, result := range found.GetResults() {
			response.Memories = append(response.Memories, entryOf(result.GetPassage()))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// deletedFrom returns the ids of the passages that ADK for Python deleted.
func deletedFrom(ctx context.Context, session *muniment.Session) (map[string]bool, error) {
	list := session.AllMemories(ctx, &munimentv1.ListMemoriesRequest{KeyPrefix: deletedPrefix, PageSize: maxPageSize})
	records, err := muniment.Collect(list, muniment.RestartOnTaintChange())
	deleted := make(map[string]bool, len(records))
	for _, record := range records {
		deleted[strings.TrimPrefix(record.GetKey(), deletedPrefix)] = true
	}
	return deleted, err
}

func passageOf(whose owner, thread string, event *session.Event, text string) *munimentv1.StorePassageRequest {
	passage := &munimentv1.StorePassageRequest{
		Content:   text,
		Tags:      []string{whose.tag()},
		Thread:    thread,
		Author:    first(maxAuthorChars, event.Author),
		PassageId: whose.passageID(thread, event.ID, text),
	}
	if !event.Timestamp.IsZero() {
		passage.EventTime = timestamppb.New(event.Timestamp)
	}
	return passage
}

func entryOf(passage *munimentv1.Passage) memory.Entry {
	role := genai.Role(genai.RoleModel)
	if passage.GetAuthor() == genai.RoleUser {
		role = genai.RoleUser
	}
	return memory.Entry{
		ID:        passage.GetPassageId(),
		Content:   genai.NewContentFromText(passage.GetContent(), role),
		Author:    passage.GetAuthor(),
		Timestamp: passage.GetEventTime().AsTime(),
	}
}

func textOf(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var texts []string
	for _, part := range content.Parts {
		if part.Text != "" && !part.Thought {
			texts = append(texts, part.Text)
		}
	}
	return storable(strings.Join(texts, " "))
}

// storable returns a text in which U+FFFD replaces what cannot be stored: U+0000, and bytes that are not UTF-8. A
// message that has one must not keep the rest of its session from being stored.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// first returns at most so many characters of a text.
func first(count int, text string) string {
	for at := range text {
		if count == 0 {
			return text[:at]
		}
		count--
	}
	return text
}

// An owner is a user of an application. Tags, ids and agents are the same in every language's adapter.
type owner struct {
	app, user string
}

func (o owner) tag() string {
	return reserved + "adk:" + digest(o.app, o.user)
}

func (o owner) agent() string {
	return "adk-" + digest(o.app, o.user)
}

func (o owner) passageID(thread, event, text string) string {
	return uuid.NewSHA1(ids, []byte(joined(o.app, o.user, thread, event, text))).String()
}

func digest(names ...string) string {
	sum := sha256.Sum256([]byte(joined(names...)))
	return hex.EncodeToString(sum[:16])
}

// joined returns one text for the names, different for others however they are split.
func joined(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%d:%s", len(name), name)
	}
	return text.String()
}
