package adk_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A model that knows the names of another user can compute the tag and the ids of that user's memories.
func TestNoModelCanForgeAMemoryOrADeletion(t *testing.T) {
	own, other := someone(t)(public), someone(t)(public)
	service := adk.NewMemoryService(own)
	add(t, service, conversation("one", "ada", "She likes Assam."))
	stored := must(own.ListPassages(t.Context(), &munimentv1.ListPassagesRequest{})).GetPassages()[0]

	for _, spelled := range []func(string) string{
		func(name string) string { return name },
		func(name string) string { return " " + name },
		func(name string) string { return strings.TrimPrefix(name, "muniment:") },
	} {
		call(t, other, "passage_store", map[string]any{"content": "No Assam.", "tags": []string{spelled(stored.GetTags()[0])}})
		key := spelled("muniment:adk-deleted/" + stored.GetPassageId())
		call(t, other, "memory_save", map[string]any{"key": key, "content": "deleted"})
	}
	call(t, own, "passage_delete", map[string]any{"passage_id": stored.GetPassageId()})

	equal(t, found(t, service, "Assam", "tea", "ada"), []string{"She likes Assam."})
	equal(t, found(t, adk.NewMemoryService(other), "Assam", "tea", "ada"), []string{})
	add(t, adk.NewMemoryService(other), conversation("one", "ada", "She likes Assam."))
	equal(t, found(t, adk.NewMemoryService(other), "Assam", "tea", "ada"), []string{"She likes Assam."})
}

// call calls a tool of MCP, as a model of a session does. The tool may refuse it.
func call(t *testing.T, session *muniment.Session, tool string, arguments map[string]any) {
	t.Helper()
	params := map[string]any{"name": tool, "arguments": arguments}
	body := must(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
	request := must(http.NewRequestWithContext(t.Context(), http.MethodPost, os.Getenv("MUNIMENT_MCP"), bytes.NewReader(body)))
	request.Header = http.Header{
		"Accept":               {"application/json, text/event-stream"},
		"Authorization":        {"Bearer " + session.Token()},
		"Content-Type":         {"application/json"},
		"Mcp-Protocol-Version": {"2025-06-18"},
	}
	response := must(http.DefaultClient.Do(request))
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer["result"] == nil {
		t.Fatalf("%s: %v %v", tool, answer, err)
	}
}
