package muniment_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

func Example() {
	ctx := context.Background()
	host, err := muniment.HostFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer host.Conn().Close()

	created, err := host.CreateAgent(ctx, &munimentv1.CreateAgentRequest{DisplayName: "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.OpenSession(ctx, &munimentv1.OpenSessionRequest{
		AgentId: created.GetAgent().GetAgentId(),
		Taint:   munimentv1.Classification_CLASSIFICATION_PUBLIC,
	})
	if err != nil {
		log.Fatal(err)
	}

	tea := &munimentv1.SaveMemoryRequest{Key: "tea", Content: "Assam, no sugar", Tags: []string{"taste"}}
	if _, err := session.SaveMemory(ctx, tea); err != nil {
		log.Fatal(err)
	}
	if _, err := host.RaiseTaint(ctx, &munimentv1.RaiseTaintRequest{
		SessionId: session.Opened.GetSessionId(),
		Taint:     munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL,
		Reason:    "read the payroll",
	}); err != nil {
		log.Fatal(err)
	}
	// Saved at CONFIDENTIAL, the new taint.
	salary := &munimentv1.SaveMemoryRequest{Key: "salary", Content: "52,000 a year"}
	if _, err := session.SaveMemory(ctx, salary); err != nil {
		log.Fatal(err)
	}
	found, err := session.SearchMemories(ctx, &munimentv1.SearchMemoriesRequest{Query: "how does she like her tea?"})
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range found.GetResults() {
		fmt.Println(result.GetMemory().GetKey(), result.GetMemory().GetClassification(), result.GetSnippet())
	}
	if _, err := session.CloseSession(ctx, &munimentv1.CloseSessionRequest{}); err != nil {
		log.Fatal(err)
	}
	// Output: tea CLASSIFICATION_PUBLIC Assam, no sugar
}

// On a server of ours too: tests/tools/tour/test_go.py.
func ExampleCollect() {
	ctx := context.Background()
	host, session := exampleConversation("errands", "tea")
	defer host.Conn().Close()

	list := session.AllMemories(ctx, &munimentv1.ListMemoriesRequest{PageSize: 1})
	for memory, err := range list {
		if muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED {
			fmt.Println("the list ends here")
			break
		} else if err != nil {
			log.Fatal(err)
		}
		fmt.Println("read", memory.GetKey())
		// The host is about to show the model the payroll. It raises the taint first.
		if _, err := host.RaiseTaint(ctx, &munimentv1.RaiseTaintRequest{
			SessionId: session.Opened.GetSessionId(),
			Taint:     munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL,
			Reason:    "read the payroll",
		}); err != nil {
			log.Fatal(err)
		}
	}
	memories, err := muniment.Collect(list, muniment.RestartOnTaintChange())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("read all", len(memories))
	// Output:
	// read errands
	// the list ends here
	// read all 2
}

// On a server of ours too: tests/tools/tour/test_go.py.
func ExampleHost_Conversation() {
	ctx := context.Background()
	host, err := muniment.HostFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	defer host.Conn().Close()
	created, err := host.CreateAgent(ctx, &munimentv1.CreateAgentRequest{})
	if err != nil {
		log.Fatal(err)
	}

	conversation, err := host.Conversation(ctx, created.GetAgent().GetAgentId(), "chat-42")
	if err != nil {
		log.Fatal(err)
	}
	defer conversation.Close(ctx)

	line := &munimentv1.SaveMemoryRequest{Key: "last-line", Content: "What does she earn?"}
	if _, err := conversation.SaveMemory(ctx, line); err != nil {
		log.Fatal(err)
	}
	taint := munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL
	if err := conversation.RaiseTaint(ctx, taint, "read the payroll"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(conversation.Current().GetConversationId(), conversation.Current().GetTaint())
	// Output: chat-42 CLASSIFICATION_CONFIDENTIAL
}

func ExampleReasonOf() {
	ctx, session := context.Background(), exampleSession()
	examples.fails("GetMemory", failure(codes.NotFound, "no such memory", reason("MEMORY_NOT_FOUND")))

	memory, err := session.GetMemory(ctx, &munimentv1.GetMemoryRequest{Key: "tea"})
	switch {
	case err == nil:
		fmt.Println(memory.GetMemory().GetContent())
	case muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_MEMORY_NOT_FOUND:
		fmt.Println("not found, or not visible to this session")
	default:
		log.Fatal(err)
	}
	// Output: not found, or not visible to this session
}

func ExampleDetail() {
	ctx, session := context.Background(), exampleSession()
	examples.fails("AddNote", failure(codes.FailedPrecondition, "over the budget", reason("BUDGET_EXCEEDED"),
		&munimentv1.BudgetExceeded{OverByChars: 12, Entries: []*munimentv1.BudgetEntry{{NoteId: noteID, LengthChars: 900}}}))

	_, err := session.AddNote(ctx, &munimentv1.AddNoteRequest{Content: "Ada has moved to Graz"})
	if full, found := muniment.Detail[*munimentv1.BudgetExceeded](err); found {
		longest := full.GetEntries()[0]
		fmt.Printf("over by %d: shorten %s, %d long\n", full.GetOverByChars(), longest.GetNoteId(), longest.GetLengthChars())
	}
	// Output: over by 12: shorten 7f4df0a5-6c1c-4a3e-9c0b-4f6f0a4c7b11, 900 long
}

func ExampleSession() {
	ctx, session := context.Background(), exampleSession()

	stream, err := session.ImportPassages(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range []string{"Graz by bus.", "Never again."} {
		passage := &munimentv1.StorePassageRequest{Content: line, Thread: "old trip"}
		if stream.Send(&munimentv1.ImportPassagesRequest{Passage: passage}) != nil {
			break // The server ended the stream. CloseAndRecv returns the error.
		}
	}
	stored, err := stream.CloseAndRecv()
	if progress, found := muniment.Detail[*munimentv1.ImportProgress](err); found {
		log.Fatalf("%v; the first %d are stored", err, progress.GetStoredCount()+progress.GetExistingCount())
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.GetStoredCount())
	// Output: 2
}

func ExampleConnect() {
	key := hostKey

	conn, err := muniment.Connect("muniment.example:443", muniment.WithTLS(nil))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	host, err := conn.Host(key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", host)
	// Output: *muniment.Host
}

// What is in the README is here, so that it compiles, runs and says what it says.
func TestTheREADMEIsTheseExamples(t *testing.T) {
	readme, source := read(t, "README.md"), read(t, "example_test.go")
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 6 {
		t.Errorf("%d blocks", len(blocks))
	}
	said := regexp.MustCompile("// Output: (.*)").FindStringSubmatch(source)[1]
	if !strings.Contains(readme, "```text\n"+said+"\n```") {
		t.Errorf("the README does not say %q", said)
	}
	for _, block := range blocks {
		lines := strings.ReplaceAll("\t"+strings.TrimSpace(block[1]), "\n", "\n\t")
		if !strings.Contains(source, strings.ReplaceAll(lines, "\n\t\n", "\n\n")) {
			t.Errorf("in the README only:\n%s", block[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// examples is the server that the examples speak to, unless MUNIMENT_ADDRESS names one for Example.
var examples *fake

func TestMain(m *testing.M) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	f, stop := start(listener, listener.Addr().String())
	f.replies["OpenSession"] = &munimentv1.OpenSessionResponse{Token: token, Session: &munimentv1.Session{
		Taint:   munimentv1.Classification_CLASSIFICATION_PUBLIC,
		Ceiling: munimentv1.Classification_CLASSIFICATION_RESTRICTED,
	}}
	f.replies["RaiseTaint"] = &munimentv1.RaiseTaintResponse{Session: &munimentv1.Session{
		ConversationId: "chat-42",
		Taint:          munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL,
	}}
	f.replies["SearchMemories"] = &munimentv1.SearchMemoriesResponse{Results: []*munimentv1.MemoryResult{{
		Memory:  &munimentv1.Memory{Key: "tea", Classification: munimentv1.Classification_CLASSIFICATION_PUBLIC},
		Snippet: "Assam, no sugar",
	}}}
	f.answers["ListMemories"] = (&pagedList{keys: []string{"errands", "tea"}, raises: 1}).list
	f.replies["ImportPassages"] = &munimentv1.ImportPassagesResponse{StoredCount: 2}
	examples = f
	if os.Getenv("MUNIMENT_ADDRESS") == "" {
		_ = os.Unsetenv("MUNIMENT_TLS_CA")
		_ = os.Setenv("MUNIMENT_ADDRESS", f.address)
		_ = os.Setenv("MUNIMENT_HOST_KEY", hostKey)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// exampleConversation opens a session of a new agent and saves memories in it.
func exampleConversation(keys ...string) (*muniment.Host, *muniment.Session) {
	ctx := context.Background()
	host, err := muniment.HostFromEnv()
	if err != nil {
		log.Fatal(err)
	}
	created, err := host.CreateAgent(ctx, &munimentv1.CreateAgentRequest{})
	if err != nil {
		log.Fatal(err)
	}
	session, err := host.OpenSession(ctx, &munimentv1.OpenSessionRequest{
		AgentId: created.GetAgent().GetAgentId(),
		Taint:   munimentv1.Classification_CLASSIFICATION_PUBLIC,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range keys {
		if _, err := session.SaveMemory(ctx, &munimentv1.SaveMemoryRequest{Key: key, Content: key}); err != nil {
			log.Fatal(err)
		}
	}
	return host, session
}

func exampleSession() *muniment.Session {
	conn, err := muniment.Connect(examples.address)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.Session(token)
	if err != nil {
		log.Fatal(err)
	}
	return session
}
