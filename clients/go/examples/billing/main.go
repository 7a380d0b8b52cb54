// Billing: a host, its tools, and a script in place of a model. See clients/three_services.sh.
//
// Billing reaches the most, so it creates the agent of a customer. Each line of the standard input is a message in the
// conversation. Answers go out by mail, after a person has read those that are not PUBLIC.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// What the ledger says of the customer: CONFIDENTIAL.
const ledger = "240 euros since May"

// tools are what the model can do. It names no level: the host raises the taint before it shows the model more.
type tools struct {
	conversation *muniment.Conversation
}

// recall returns what the service remembers, best match first.
func (t tools) recall(ctx context.Context, query string) (string, error) {
	found, err := t.conversation.SearchMemories(ctx, &munimentv1.SearchMemoriesRequest{Query: query, MaxResults: 1})
	if err != nil || len(found.GetResults()) == 0 {
		return "I do not know.", err
	}
	return found.GetResults()[0].GetMemory().GetContent(), nil
}

// readLedger returns what the customer owes, and remembers it at the taint of the conversation.
func (t tools) readLedger(ctx context.Context) (string, error) {
	taint := munimentv1.Classification_CLASSIFICATION_CONFIDENTIAL
	if err := t.conversation.RaiseTaint(ctx, taint, "read the ledger"); err != nil {
		return "", err
	}
	_, err := t.conversation.SaveMemory(ctx, &munimentv1.SaveMemoryRequest{Key: "debt", Content: ledger})
	return ledger, err
}

// model is a script. A service would send all three to a model, and run the calls that it asks for.
func model(ctx context.Context, _, message string, tools tools) (string, error) {
	if strings.Contains(message, "ledger") {
		return tools.readLedger(ctx)
	}
	address, err := tools.recall(ctx, "address")
	if err != nil {
		return "", err
	}
	debt, err := tools.recall(ctx, "debt")
	return fmt.Sprintf("To %s: you owe us %s.", address, debt), err
}

func main() {
	if err := serve(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, customer, id string) error {
	host, err := muniment.HostFromEnv()
	if err != nil {
		return err
	}
	defer host.Conn().Close()
	from := munimentv1.Classification_CLASSIFICATION_PUBLIC
	_, err = host.CreateAgent(ctx, &munimentv1.CreateAgentRequest{AgentId: customer, KnownFrom: &from})
	if err != nil && muniment.ReasonOf(err) != munimentv1.ErrorReason_ERROR_REASON_AGENT_EXISTS {
		return err
	}
	conversation, err := host.Conversation(ctx, customer, id)
	if err != nil {
		return err
	}
	defer conversation.Close(ctx)
	for messages := bufio.NewScanner(os.Stdin); messages.Scan(); {
		if err := answer(ctx, messages.Text(), tools{conversation}); err != nil {
			return err
		}
	}
	return nil
}

func answer(ctx context.Context, message string, tools tools) error {
	prompt, err := tools.conversation.RenderPrompt(ctx, &munimentv1.RenderPromptRequest{})
	if err != nil {
		return err
	}
	text, err := model(ctx, prompt.GetText(), message, tools)
	if err != nil {
		return err
	}
	now, err := tools.conversation.GetSession(ctx, &munimentv1.GetSessionRequest{})
	if err != nil {
		return err
	}
	if taint := now.GetSession().GetTaint(); taint > munimentv1.Classification_CLASSIFICATION_PUBLIC {
		text = fmt.Sprintf("held at %s: %s", strings.TrimPrefix(taint.String(), "CLASSIFICATION_"), text)
	}
	fmt.Println("billing:", text)
	return nil
}
