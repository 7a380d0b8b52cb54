// The memory service, beside ADK's own, on the server that MUNIMENT_ADDRESS and MUNIMENT_HOST_KEY name.
// tests/clients/frameworks/test_go.py runs it.
package adk_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/loadmemorytool"
	"google.golang.org/genai"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const (
	public       = munimentv1.Classification_CLASSIFICATION_PUBLIC
	internal     = munimentv1.Classification_CLASSIFICATION_INTERNAL
	confidential = munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL
	restricted   = munimentv1.Classification_CLASSIFICATION_RESTRICTED
)

var host *muniment.Host

func TestMain(m *testing.M) {
	connected, err := muniment.HostFromEnv()
	if err != nil {
		log.Fatalf("these tests need a server: tests/clients/frameworks/test_go.py starts one (%v)", err)
	}
	host = connected
	code := m.Run()
	_ = host.Conn().Close()
	os.Exit(code)
}

// someone opens sessions of a new agent, each with a conversation of its own.
func someone(t *testing.T) func(munimentv1.Classification) *muniment.Session {
	t.Helper()
	created := must(host.CreateAgent(t.Context(), &munimentv1.CreateAgentRequest{}))
	return func(level munimentv1.Classification) *muniment.Session {
		return openedBy(t, created.GetAgent().GetAgentId(), level)
	}
}

func openedBy(t *testing.T, agent string, level munimentv1.Classification) *muniment.Session {
	t.Helper()
	return must(host.OpenSession(t.Context(), &munimentv1.OpenSessionRequest{AgentId: agent, Taint: level}))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// conversation is an ADK session of an application `tea`, with an event for each text.
func conversation(id, user string, texts ...string) session.Session {
	ctx, sessions := context.Background(), session.InMemoryService()
	made := must(sessions.Create(ctx, &session.CreateRequest{AppName: "tea", UserID: user, SessionID: id})).Session
	for number, text := range texts {
		event := &session.Event{ID: fmt.Sprint("event ", number), Author: "user", Timestamp: time.Unix(1_700_000_000+int64(number), 0)}
		event.Content = genai.NewContentFromText(text, genai.RoleUser)
		if err := sessions.AppendEvent(ctx, made, event); err != nil {
			panic(err)
		}
	}
	return made
}

func add(t *testing.T, service memory.Service, added session.Session) {
	t.Helper()
	if err := service.AddSessionToMemory(t.Context(), added); err != nil {
		t.Fatal(err)
	}
}

func found(t *testing.T, service memory.Service, query, app, user string) []string {
	t.Helper()
	texts := []string{}
	for _, entry := range must(service.SearchMemory(t.Context(), &memory.SearchRequest{AppName: app, UserID: user, Query: query})).Memories {
		texts = append(texts, entry.Content.Parts[0].Text)
	}
	slices.Sort(texts)
	return texts
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// steps is what a service answers. Neighbors in an ADK session, which ours returns too, match themselves or not at all.
func steps(t *testing.T, service memory.Service) [][]string {
	t.Helper()
	answers := [][]string{found(t, service, "Assam", "tea", "ada")}
	note := func(query, app, user string) { answers = append(answers, found(t, service, query, app, user)) }

	add(t, service, conversation("one", "ada", "She likes Assam", ""))
	add(t, service, conversation("two", "ada", "No sugar ever"))
	note("Assam", "tea", "ada")
	note("Assam", "tea", "bob")
	note("Assam", "te", "aada")
	note("coffee", "tea", "ada")
	note(" ", "tea", "ada")
	add(t, service, conversation("one", "ada", "She likes Assam", "", "Assam at nine"))
	note("Assam", "tea", "ada")
	note("sugar", "tea", "ada")
	return answers
}

func TestAMissingClientIsRefusedAtOnce(t *testing.T) {
	for name, make := range map[string]func(){
		"session": func() { adk.NewMemoryService(nil) },
		"host":    func() { adk.NewSharedMemoryService(nil, public) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "needs a "+name) {
					t.Error(said)
				}
			}()
			make()
		}()
	}
}

func TestItAnswersLikeADKsOwnService(t *testing.T) {
	for _, taint := range []munimentv1.Classification{public, confidential} {
		ours := steps(t, adk.NewMemoryService(someone(t)(taint)))
		equal(t, ours, steps(t, memory.InMemoryService()))
		equal(t, ours[1], []string{"She likes Assam"})
		equal(t, ours[6], []string{"Assam at nine", "She likes Assam"})
	}
}

func TestAMemoryIsTheEvent(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	add(t, service, conversation("one", "ada", "She likes Assam"))
	request := &memory.SearchRequest{AppName: "tea", UserID: "ada", Query: "Assam " + strings.Repeat("é", 2_000)}
	entry := must(service.SearchMemory(t.Context(), request)).Memories[0]
	equal(t, []string{entry.Author, entry.Content.Role, entry.Timestamp.Format(time.RFC3339)},
		[]string{"user", "user", "2023-11-14T22:13:20Z"})
}

func TestWhatWasSaidBesideAMatchIsFoundToo(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	add(t, service, conversation("one", "ada", "Which tea?", "Assam."))
	add(t, service, conversation("two", "ada", "When?", "At nine."))
	equal(t, found(t, service, "tea", "tea", "ada"), []string{"Assam.", "Which tea?"})
}

func TestACharacterThatCannotBeStoredStopsNothing(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	add(t, service, conversation("one", "ada", "Assam\x00 please", "Assam \xff", "Assam at nine."))
	equal(t, found(t, service, "Assam", "tea", "ada"), []string{"Assam at nine.", "Assam \uFFFD", "Assam\uFFFD please"})
	equal(t, found(t, service, "nine \x00\xff", "tea", "ada"), found(t, service, "nine", "tea", "ada"))
}

func TestTheThoughtsOfAModelAreNoSpeech(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	added := conversation("one", "ada", "Assam?", "")
	thought := &genai.Part{Text: "Assam is too strong for her.", Thought: true}
	for event := range added.Events().All() {
		event.Content.Parts = append([]*genai.Part{thought}, event.Content.Parts...)
	}
	add(t, service, added)
	equal(t, found(t, service, "Assam", "tea", "ada"), []string{"Assam?"})
}

func TestAnEventThatIsTooLongStopsNoOther(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	added := conversation("one", "ada", "Assam", strings.Repeat("é", 128*1024+1), strings.Repeat("é", 128*1024), "Assam at nine.")
	if err := service.AddSessionToMemory(t.Context(), added); err == nil || !strings.Contains(err.Error(), "not stored: 1") {
		t.Errorf("got %v", err)
	}
	equal(t, found(t, service, "Assam", "tea", "ada"), []string{"Assam", "Assam at nine."})
}

func TestAtTwoTaints(t *testing.T) {
	opened := someone(t)
	low, high := adk.NewMemoryService(opened(public)), adk.NewMemoryService(opened(confidential))
	add(t, low, conversation("one", "ada", "She likes Assam."))
	add(t, high, conversation("two", "ada", "Her Assam costs 52,000 a year."))

	equal(t, found(t, low, "Assam", "tea", "ada"), []string{"She likes Assam."})
	equal(t, found(t, high, "Assam", "tea", "ada"), []string{"Her Assam costs 52,000 a year.", "She likes Assam."})
}

// Python's test_adk.py and Java's AdkMemories.java have the same names.
func TestEveryLanguageStoresTheSame(t *testing.T) {
	session := someone(t)(public)
	add(t, adk.NewMemoryService(session), conversation("one", "ada", "Tee für Ada"))
	only(t, session, "a7466333386f189d1521d8e581abb47c", "c294d56f-dc4d-5d98-88f1-f9165894916e")
}

func only(t *testing.T, session *muniment.Session, tag, id string) {
	t.Helper()
	passages := must(session.ListPassages(t.Context(), &munimentv1.ListPassagesRequest{})).GetPassages()
	if len(passages) != 1 {
		t.Fatalf("%d passages", len(passages))
	}
	passage := passages[0]
	equal(t, []string{passage.GetTags()[0], passage.GetPassageId(), passage.GetThread()}, []string{"muniment:adk:" + tag, id, "one"})
}

// As its delete_memory does it: the passage is deleted, and a memory records that.
func TestWhatADKForPythonDeletedStaysDeleted(t *testing.T) {
	session := someone(t)(public)
	service := adk.NewMemoryService(session)
	add(t, service, conversation("one", "ada", "She likes Assam."))
	id := must(session.ListPassages(t.Context(), &munimentv1.ListPassagesRequest{})).GetPassages()[0].GetPassageId()
	must(session.DeletePassage(t.Context(), &munimentv1.DeletePassageRequest{PassageId: id}))
	must(session.SaveMemory(t.Context(), &munimentv1.SaveMemoryRequest{Key: "muniment:adk-deleted/" + id, Content: "deleted"}))

	add(t, service, conversation("one", "ada", "She likes Assam."))
	equal(t, found(t, service, "Assam", "tea", "ada"), []string{})
}

func TestTheMemoriesOfAConversationAreApartByUser(t *testing.T) {
	service := adk.NewMemoryService(someone(t)(public))
	add(t, service, conversation("one", "ada", "She likes Assam."))
	add(t, service, conversation("one", "bob", "He likes Assam."))

	equal(t, found(t, service, "Assam", "tea", "ada"), []string{"She likes Assam."})
	equal(t, found(t, service, "Assam", "tea", "bob"), []string{"He likes Assam."})
	equal(t, found(t, service, "Assam", "coffee", "ada"), []string{})
}

func TestTheMemoriesOfAnApplicationAreApartByUser(t *testing.T) {
	service, users := adk.NewSharedMemoryService(host, internal), fmt.Sprint(" ", time.Now().UnixNano())
	for _, user := range []string{"ada", "bob"} {
		add(t, service, conversation("one", user+users, user+" likes Assam."))
	}

	equal(t, found(t, service, "Assam", "tea", "ada"+users), []string{"ada likes Assam."})
	equal(t, found(t, service, "Assam", "tea", "bob"+users), []string{"bob likes Assam."})
	for agent := range host.AllAgents(t.Context(), &munimentv1.ListAgentsRequest{}) {
		if agent.GetDisplayName() == "tea" {
			owners := map[string]bool{}
			session := openedBy(t, agent.GetAgentId(), internal)
			for _, passage := range must(session.ListPassages(t.Context(), &munimentv1.ListPassagesRequest{})).GetPassages() {
				owners[passage.GetTags()[0]] = true
			}
			equal(t, len(owners), 1) // The agent itself is the user's alone.
		}
	}
}

func TestAnApplicationHasAnAgentForEachUserAtOneLevel(t *testing.T) {
	user := fmt.Sprint("user ", time.Now().UnixNano())
	service := adk.NewSharedMemoryService(host, internal)
	for range 2 {
		add(t, service, conversation("one", user, "She likes Assam."))
	}
	equal(t, found(t, service, "Assam", "tea", user), []string{"She likes Assam."})
	equal(t, found(t, service, "Assam", "tea", user+"!"), []string{})

	for agent, err := range host.AllAgents(t.Context(), &munimentv1.ListAgentsRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if agent.GetDisplayName() != "tea" {
			continue
		}
		above := must(openedBy(t, agent.GetAgentId(), restricted).ListPassages(t.Context(), &munimentv1.ListPassagesRequest{}))
		for _, passage := range above.GetPassages() {
			equal(t, passage.GetClassification(), internal)
		}
		below := must(openedBy(t, agent.GetAgentId(), public).ListPassages(t.Context(), &munimentv1.ListPassagesRequest{}))
		equal(t, len(below.GetPassages()), 0)
	}
}

// scripted is a model that asks its memory, and then says what it was answered.
type scripted struct{}

func (scripted) Name() string { return "scripted" }

func (scripted) GenerateContent(_ context.Context, request *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	parts := request.Contents[len(request.Contents)-1].Parts
	answer := genai.NewContentFromFunctionCall("load_memory", map[string]any{"query": "tea"}, genai.RoleModel)
	if response := parts[len(parts)-1].FunctionResponse; response != nil {
		memories := response.Response["memories"].([]memory.Entry)
		answer = genai.NewContentFromText(memories[0].Content.Parts[0].Text, genai.RoleModel)
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: answer}, nil)
	}
}

func TestARunnerAsTheREADMEShowsIt(t *testing.T) {
	opened := someone(t)(internal)
	add(t, adk.NewMemoryService(opened), conversation("one", "ada", "She likes her tea without sugar."))
	agent := must(llmagent.New(llmagent.Config{
		Name: "butler", Model: scripted{}, Tools: []tool.Tool{loadmemorytool.New()},
	}))
	sessions := session.InMemoryService()
	talk := must(sessions.Create(t.Context(), &session.CreateRequest{AppName: "tea", UserID: "ada"})).Session

	said := ""
	message := genai.NewContentFromText("How does she like it?", genai.RoleUser)
	for event, err := range must(butler(agent, sessions, opened)).Run(t.Context(), "ada", talk.ID(), message, runConfig) {
		if err != nil {
			t.Fatal(err)
		}
		said += event.Content.Parts[0].Text
	}
	equal(t, said, "She likes her tea without sugar.")
}
