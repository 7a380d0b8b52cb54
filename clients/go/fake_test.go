package muniment_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const (
	hostKey = "mun_h_1_host-key"
	token   = "mun_s_1_session-token"
	noteID  = "7f4df0a5-6c1c-4a3e-9c0b-4f6f0a4c7b11"
)

// A fake is a server that says what a test has scripted, and else an empty response; it keeps what it heard.
type fake struct {
	address string

	mu      sync.Mutex
	script  map[string][]*status.Status
	replies map[string]proto.Message
	// What is answered to a request, where that depends on it.
	answers map[string]func(request proto.Message) (proto.Message, *status.Status)
	heard   []call
	// What is done before a call of a method is answered.
	gates map[string]func()
	// If answers are numbered, the request id of the first is 1.
	numbered bool
	answered int
}

// A call is what the fake heard: the last part of the method's name, and the messages of its stream.
type call struct {
	method        string
	requests      []proto.Message
	authorization []string
	left          time.Duration
}

func serve(t testing.TB, options ...grpc.ServerOption) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, listener.Addr().String(), options...)
}

func serveUnix(t testing.TB) *fake {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, "unix:"+path)
}

func serveTLS(t testing.TB, certificate tls.Certificate) *fake {
	t.Helper()
	return serve(t, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
}

func serveOn(t testing.TB, listener net.Listener, address string, options ...grpc.ServerOption) *fake {
	t.Helper()
	f, stop := start(listener, address, options...)
	t.Cleanup(stop)
	return f
}

func start(listener net.Listener, address string, options ...grpc.ServerOption) (f *fake, stop func()) {
	f = &fake{
		address: address,
		script:  map[string][]*status.Status{},
		replies: map[string]proto.Message{},
		answers: map[string]func(proto.Message) (proto.Message, *status.Status){},
		gates:   map[string]func(){},
	}
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(f.answer))...)
	go func() { _ = server.Serve(listener) }()
	return f, server.Stop
}

// fails makes the next calls of a method fail, one after the other.
func (f *fake) fails(method string, failures ...*status.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script[method] = append(f.script[method], failures...)
}

// gate does something before each further call of a method is answered.
func (f *fake) gate(method string, before func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gates[method] = before
}

// calls are those of one method, in their order.
func (f *fake) calls(method string) []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []call
	for _, each := range f.heard {
		if each.method == method {
			found = append(found, each)
		}
	}
	return found
}

func (f *fake) answer(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	method := methodOf(full)
	heard := call{method: string(method.Name())}
	given, _ := metadata.FromIncomingContext(stream.Context())
	heard.authorization = given.Get("authorization")
	if deadline, ok := stream.Context().Deadline(); ok {
		heard.left = time.Until(deadline)
	}
	for {
		request := newMessage(method.Input())
		if err := stream.RecvMsg(request); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		heard.requests = append(heard.requests, request)
	}
	f.mu.Lock()
	gate := f.gates[heard.method]
	f.mu.Unlock()
	if gate != nil {
		gate()
	}
	return f.reply(stream, method, heard)
}

func (f *fake) reply(stream grpc.ServerStream, method protoreflect.MethodDescriptor, heard call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, heard)
	if f.answered++; f.numbered {
		stream.SetTrailer(metadata.Pairs("request-id", strconv.Itoa(f.answered)))
	}
	if failures := f.script[heard.method]; len(failures) > 0 {
		f.script[heard.method] = failures[1:]
		return failures[0].Err()
	}
	if answer, ok := f.answers[heard.method]; ok {
		reply, failure := answer(heard.requests[0])
		if failure != nil {
			return failure.Err()
		}
		return stream.SendMsg(reply)
	}
	if reply, ok := f.replies[heard.method]; ok {
		return stream.SendMsg(reply)
	}
	return stream.SendMsg(newMessage(method.Output()))
}

func methodOf(full string) protoreflect.MethodDescriptor {
	name := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		panic(err)
	}
	return found.(protoreflect.MethodDescriptor)
}

func newMessage(of protoreflect.MessageDescriptor) proto.Message {
	found, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	if err != nil {
		panic(err)
	}
	return found.New().Interface()
}

// methods are all of the contract, by their full names as gRPC has them.
func methods() map[string]protoreflect.MethodDescriptor {
	found := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("muniment.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				found["/"+string(service.FullName())+"/"+string(method.Name())] = method
			}
		}
		return true
	})
	return found
}

// failure is a status with details.
func failure(code codes.Code, message string, details ...proto.Message) *status.Status {
	made := status.New(code, message)
	for _, each := range details {
		var err error
		if made, err = made.WithDetails(protoadapt.MessageV1Of(each)); err != nil {
			panic(err)
		}
	}
	return made
}

func connect(t testing.TB, f *fake, options ...muniment.Option) *muniment.Conn {
	t.Helper()
	conn, err := muniment.Connect(f.address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func hostOf(t testing.TB, conn *muniment.Conn) *muniment.Host {
	t.Helper()
	host, err := conn.Host(hostKey)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func sessionOf(t testing.TB, conn *muniment.Conn) *muniment.Session {
	t.Helper()
	session, err := conn.Session(token)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func saveRequest() *munimentv1.SaveMemoryRequest {
	return &munimentv1.SaveMemoryRequest{Key: "tea", Content: "Assam"}
}
