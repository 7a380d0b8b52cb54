package adk_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
)

var runConfig agent.RunConfig

func butler(agent agent.Agent, sessions session.Service, conversation *muniment.Session) (*runner.Runner, error) {
	return runner.New(runner.Config{
		AppName:        "tea",
		Agent:          agent,
		SessionService: sessions,
		MemoryService:  adk.NewMemoryService(conversation),
	})
}

// What is in the README is here, so that it compiles and runs.
func TestTheREADMEIsThisFile(t *testing.T) {
	source := must(os.ReadFile("example_test.go"))
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(must(os.ReadFile("README.md")), -1)
	if len(blocks) != 1 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		for _, line := range strings.Split(strings.TrimSpace(string(block[1])), "\n") {
			if !strings.Contains(string(source), line) {
				t.Errorf("in the README only: %s", line)
			}
		}
	}
}
