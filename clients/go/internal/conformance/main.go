// The conformance runner of the Go client: plays the scenarios of a file and prints what came, one line for each step.
//
//	conformance FILE
//
// The server is at MUNIMENT_ADDRESS, with TLS when MUNIMENT_TLS_CA names its authority; the host has
// MUNIMENT_HOST_KEY. tests/clients/conformance says what the file and the lines are.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	muniment "muniment.example/clients/go"
)

// input lets a step wait until it may be played.
var input = bufio.NewReader(os.Stdin)

type scenario struct {
	Name  string
	Steps []json.RawMessage
}

// conversations are those that a scenario has opened, by the caller that its steps name.
type conversations map[string]*muniment.Conversation

type step struct {
	As         string
	Call       string
	Request    json.RawMessage
	Requests   []json.RawMessage
	Save       map[string]string
	DeadlineMS int  `json:"deadline_ms"`
	MayBeLost  bool `json:"may_be_lost"`
	Wait       bool
}

type line map[string]any

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: conformance FILE"))
	}
	var file struct{ Scenarios []scenario }
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		fail(err)
	}
	conn, err := connect()
	if err != nil {
		fail(err)
	}
	for _, each := range file.Scenarios {
		if err := play(conn, each); err != nil {
			fail(fmt.Errorf("%s: %w", each.Name, err))
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// connect makes a connection as the environment says. Nothing is sent yet.
func connect() (*muniment.Conn, error) {
	var options []muniment.Option
	if ca := os.Getenv("MUNIMENT_TLS_CA"); ca != "" {
		options = append(options, muniment.WithCAFile(ca))
	}
	return muniment.Connect(os.Getenv("MUNIMENT_ADDRESS"), options...)
}

// play makes the calls of a scenario. Its variables live until its end.
func play(conn *muniment.Conn, played scenario) error {
	variables := map[string]any{}
	opened := conversations{}
	for number, raw := range played.Steps {
		came := line{"scenario": played.Name, "step": number}
		resolved, known := substitute(decoded(raw), variables)
		if !known {
			came["status"] = "UNRESOLVED"
		} else if err := playStep(conn, resolved, variables, opened, came); err != nil {
			return fmt.Errorf("step %d: %w", number, err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(came); err != nil {
			return err
		}
	}
	return nil
}

func playStep(
	conn *muniment.Conn, resolved any, variables map[string]any, opened conversations, came line,
) error {
	text, err := json.Marshal(resolved)
	if err != nil {
		return err
	}
	s := step{Request: json.RawMessage("{}")}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Requests == nil {
		s.Requests = []json.RawMessage{s.Request}
	}
	if s.Wait {
		_, _ = input.ReadString('\n')
	}
	conn, err = opened.as(conn, s.As)
	if err != nil {
		return err
	}
	response, err := call(conn, s)
	var failure *muniment.Error
	if errors.As(err, &failure) && (s.MayBeLost || failure.Code != codes.Unavailable || failure.ReasonName != "") {
		return tell(failure, came)
	} else if err != nil {
		return err // A lost connection, too: it is not the service that says so.
	}
	printed, err := protojson.Marshal(response)
	if err != nil {
		return err
	}
	came["status"], came["response"] = "OK", decoded(printed)
	for variable, path := range s.Save {
		if value := at(came["response"], path); value != nil {
			variables[variable] = value
		}
	}
	return nil
}

// as gives the connection to the caller that a step names.
func (c conversations) as(conn *muniment.Conn, caller string) (*muniment.Conn, error) {
	names := strings.Fields(caller)
	switch {
	case caller == "none":
		return conn, nil
	case caller == "host":
		return conn.WithCredential(os.Getenv("MUNIMENT_HOST_KEY"))
	case len(names) == 3:
		if err := c.open(conn, caller, names[1], names[2]); err != nil {
			return nil, err
		}
		return c[caller].Conn(), nil
	default:
		return conn.WithCredential(caller)
	}
}

// open opens a conversation unless a step before has done so.
func (c conversations) open(conn *muniment.Conn, caller, agentID, conversationID string) error {
	if c[caller] != nil {
		return nil
	}
	host, err := conn.Host(os.Getenv("MUNIMENT_HOST_KEY"))
	if err != nil {
		return err
	}
	c[caller], err = host.Conversation(context.Background(), agentID, conversationID)
	return err
}

// call makes the call of a step. The error is an *Error of the client, or else the step cannot be played.
func call(conn *muniment.Conn, s step) (proto.Message, error) {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("muniment.v1." + s.Call))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Call, err)
	}
	method, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no method", s.Call)
	}
	var requests []proto.Message
	for _, each := range s.Requests {
		request := newMessage(method.Input())
		if err := protojson.Unmarshal(each, request); err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	ctx := context.Background()
	if s.DeadlineMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.DeadlineMS)*time.Millisecond)
		defer cancel()
	}
	response := newMessage(method.Output())
	path := "/muniment.v1." + strings.Replace(s.Call, ".", "/", 1)
	if method.IsStreamingClient() {
		return response, stream(ctx, conn, path, requests, response)
	}
	return response, conn.Invoke(ctx, path, requests[0], response)
}

func stream(ctx context.Context, conn *muniment.Conn, path string, requests []proto.Message, response proto.Message) error {
	opened, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, path)
	if err != nil {
		return err
	}
	for _, request := range requests {
		if opened.SendMsg(request) != nil {
			break // The server ended the stream. RecvMsg returns the error.
		}
	}
	if err := opened.CloseSend(); err != nil {
		return err
	}
	return opened.RecvMsg(response)
}

func newMessage(of protoreflect.MessageDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	if err != nil {
		fail(err)
	}
	return found.New().Interface()
}

// tell puts what is known of a failure into the line of its step.
func tell(failure *muniment.Error, came line) error {
	details := []any{}
	for _, each := range failure.GRPCStatus().Proto().GetDetails() {
		if each.MessageIs((*errdetails.ErrorInfo)(nil)) {
			continue
		}
		printed, err := protojson.Marshal(each)
		if err != nil {
			return err
		}
		details = append(details, decoded(printed))
	}
	came["status"] = code.Code(failure.Code).String()
	came["reason"], came["message"], came["details"] = failure.ReasonName, failure.Message, details
	came["request_id"] = failure.RequestID
	return nil
}

// decoded is a JSON text as values, numbers as they are written.
func decoded(text []byte) any {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		fail(err)
	}
	return value
}

var variable = regexp.MustCompile(`\$\{([^}]+)\}`)

// substitute puts variables into all strings of a value, and says whether it knew them all.
func substitute(value any, variables map[string]any) (any, bool) {
	known := true
	var walk func(any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case string:
			return variable.ReplaceAllStringFunc(value, func(found string) string {
				saved, ok := variables[variable.FindStringSubmatch(found)[1]]
				known = known && ok
				return fmt.Sprint(saved)
			})
		case []any:
			for i := range value {
				value[i] = walk(value[i])
			}
		case map[string]any:
			for name := range value {
				value[name] = walk(value[name])
			}
		}
		return value
	}
	return walk(value), known
}

// at is what stands at a dotted path, such as memories.0.key. Nothing: nil.
func at(value any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[part]
		case []any:
			number, err := strconv.Atoi(part)
			if err != nil || number < 0 || number >= len(inside) {
				return nil
			}
			value = inside[number]
		default:
			return nil
		}
	}
	return value
}
