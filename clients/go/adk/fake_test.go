package adk_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A fake is a server that fails as a test has scripted, and else answers what an empty server would. It keeps the names
// of the calls, in their order.
type fake struct {
	munimentv1.UnimplementedAgentServiceServer
	munimentv1.UnimplementedMemoryServiceServer
	munimentv1.UnimplementedPassageServiceServer
	munimentv1.UnimplementedSessionServiceServer
	failures map[string][]error
	heard    []string
	memories []*munimentv1.Memory
	ttl      time.Duration // of the last session
	imported []string      // the ids of the last import
}

func (*fake) CreateAgent(context.Context, *munimentv1.CreateAgentRequest) (*munimentv1.CreateAgentResponse, error) {
	return &munimentv1.CreateAgentResponse{}, nil
}

func (f *fake) OpenSession(_ context.Context, request *munimentv1.OpenSessionRequest) (*munimentv1.OpenSessionResponse, error) {
	f.ttl = request.GetTtl().AsDuration()
	return &munimentv1.OpenSessionResponse{Token: "mun_s_1_token"}, nil
}

func (*fake) CloseSession(context.Context, *munimentv1.CloseSessionRequest) (*munimentv1.CloseSessionResponse, error) {
	return &munimentv1.CloseSessionResponse{}, nil
}

func (f *fake) ListMemories(context.Context, *munimentv1.ListMemoriesRequest) (*munimentv1.ListMemoriesResponse, error) {
	return &munimentv1.ListMemoriesResponse{Memories: f.memories}, nil
}

func (*fake) SearchPassages(context.Context, *munimentv1.SearchPassagesRequest) (*munimentv1.SearchPassagesResponse, error) {
	return &munimentv1.SearchPassagesResponse{}, nil
}

func (f *fake) ImportPassages(
	stream grpc.ClientStreamingServer[munimentv1.ImportPassagesRequest, munimentv1.ImportPassagesResponse],
) error {
	f.imported = nil
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&munimentv1.ImportPassagesResponse{})
		} else if err != nil {
			return err
		}
		f.imported = append(f.imported, request.GetPassage().GetPassageId())
	}
}

// fails makes the next calls of a method fail, one after the other.
func (f *fake) fails(method string, failures ...error) {
	f.failures[method] = failures
}

func (f *fake) next(fullMethod string) error {
	method := fullMethod[strings.LastIndex(fullMethod, "/")+1:]
	f.heard = append(f.heard, method)
	failures := f.failures[method]
	if len(failures) == 0 {
		return nil
	}
	f.failures[method] = failures[1:]
	return failures[0]
}

func serve(t *testing.T) (*fake, *muniment.Conn) {
	t.Helper()
	service := &fake{failures: map[string][]error{}}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
			if err := service.next(info.FullMethod); err != nil {
				return nil, err
			}
			return answer(ctx, request)
		}),
		grpc.StreamInterceptor(func(_ any, stream grpc.ServerStream, info *grpc.StreamServerInfo, answer grpc.StreamHandler) error {
			if err := service.next(info.FullMethod); err != nil {
				return err
			}
			return answer(service, stream)
		}),
	)
	munimentv1.RegisterAgentServiceServer(server, service)
	munimentv1.RegisterMemoryServiceServer(server, service)
	munimentv1.RegisterPassageServiceServer(server, service)
	munimentv1.RegisterSessionServiceServer(server, service)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn := must(muniment.Connect(listener.Addr().String()))
	t.Cleanup(func() { _ = conn.Close() })
	return service, conn
}

func failure(code codes.Code, details ...protoadapt.MessageV1) error {
	return must(status.New(code, "it is so").WithDetails(details...)).Err()
}

func refused(code codes.Code, reason string) error {
	return failure(code, &errdetails.ErrorInfo{Domain: "muniment.v1", Reason: reason})
}

func ofConversation(conn *muniment.Conn) memory.Service {
	return adk.NewMemoryService(must(conn.Session("mun_s_1_token")))
}

func ofApplication(conn *muniment.Conn) memory.Service {
	return adk.NewSharedMemoryService(must(conn.Host("mun_h_1_key")), internal)
}

func search(t *testing.T, service memory.Service) error {
	t.Helper()
	_, err := service.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "tea", UserID: "ada", Query: "Assam"})
	return err
}

// As a real server does if many imports of one agent come at once.
func TestAnAddIsMadeAgain(t *testing.T) {
	service, conn := serve(t)
	busy := failure(codes.ResourceExhausted, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	service.fails("ImportPassages", busy, busy)

	add(t, ofConversation(conn), conversation("one", "ada", "She likes Assam"))

	equal(t, service.heard, []string{"ListMemories", "ImportPassages", "ImportPassages", "ImportPassages"})
}

func TestAnAddIsMadeAgainIfTheTaintIsRaisedMeanwhile(t *testing.T) {
	raised := refused(codes.Aborted, "TAINT_CHANGED")
	for raises := range 6 {
		service, conn := serve(t)
		service.fails("ImportPassages", slices.Repeat([]error{raised}, raises)...)

		err := ofConversation(conn).AddSessionToMemory(t.Context(), conversation("one", "ada", "She likes Assam"))

		// What the new taint reveals may say that more is deleted.
		equal(t, service.heard, slices.Repeat([]string{"ListMemories", "ImportPassages"}, min(raises, 4)+1))
		if fails := raises > 4; fails != (muniment.ReasonOf(err) == munimentv1.ErrorReason_ERROR_REASON_TAINT_CHANGED) {
			t.Errorf("%d raises: %v", raises, err)
		}
	}
}

func TestAnAddThatIsRefusedIsMadeOnce(t *testing.T) {
	service, conn := serve(t)
	service.fails("ImportPassages", refused(codes.ResourceExhausted, "QUOTA_EXCEEDED"))

	err := ofConversation(conn).AddSessionToMemory(t.Context(), conversation("one", "ada", "She likes Assam"))

	equal(t, muniment.ReasonOf(err), munimentv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED)
	equal(t, service.heard, []string{"ListMemories", "ImportPassages"})
}

func TestAnAddThatIsMadeAgainStoresTheSame(t *testing.T) {
	service, conn := serve(t)
	talk := conversation("one", "ada", "She likes Assam", "No sugar")
	add(t, ofConversation(conn), talk)
	first, second := service.imported[0], service.imported[1]

	service.memories = []*munimentv1.Memory{{Key: "muniment:adk-deleted/" + first}}
	service.fails("ImportPassages", refused(codes.Aborted, "TAINT_CHANGED"))
	add(t, ofConversation(conn), talk)

	equal(t, service.imported, []string{second})
}

// Nor does it count the agents of the tenant, as CreateAgent does.
func TestAUserWhoHasAnAgentNeedsNoRoomForAnother(t *testing.T) {
	service, conn := serve(t)
	service.fails("CreateAgent", refused(codes.ResourceExhausted, "QUOTA_EXCEEDED"))

	equal(t, search(t, ofApplication(conn)), nil)
	equal(t, service.heard, []string{"OpenSession", "SearchPassages", "CloseSession"})
}

func TestANewUserGetsAnAgentWhoeverIsFirstToCreateIt(t *testing.T) {
	for _, failures := range [][]error{nil, {refused(codes.AlreadyExists, "AGENT_EXISTS")}} {
		service, conn := serve(t)
		service.fails("OpenSession", refused(codes.NotFound, "AGENT_NOT_FOUND"))
		service.fails("CreateAgent", failures...)

		add(t, ofApplication(conn), conversation("one", "ada", "She likes Assam"))
		equal(t, service.heard, []string{
			"OpenSession", "CreateAgent", "OpenSession", "ListMemories", "ImportPassages", "CloseSession",
		})
	}
}

func TestASearchForANewUserFindsNothingAndCreatesNoAgent(t *testing.T) {
	service, conn := serve(t)
	service.fails("OpenSession", refused(codes.NotFound, "AGENT_NOT_FOUND"))

	equal(t, found(t, ofApplication(conn), "Assam", "tea", "ada"), []string{})
	equal(t, service.heard, []string{"OpenSession"})
}

func TestANewUserForWhomThereIsNoRoomIsRefused(t *testing.T) {
	service, conn := serve(t)
	service.fails("OpenSession", refused(codes.NotFound, "AGENT_NOT_FOUND"))
	service.fails("CreateAgent", refused(codes.ResourceExhausted, "QUOTA_EXCEEDED"))

	err := ofApplication(conn).AddSessionToMemory(t.Context(), conversation("one", "ada", "She likes Assam"))

	equal(t, muniment.ReasonOf(err), munimentv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED)
	equal(t, service.heard, []string{"OpenSession", "CreateAgent"})
}

func TestNoAgentIsCreatedIfASessionIsRefusedForAnotherReason(t *testing.T) {
	service, conn := serve(t)
	application := ofApplication(conn)
	for _, call := range []func() error{
		func() error { return search(t, application) },
		func() error {
			return application.AddSessionToMemory(t.Context(), conversation("one", "ada", "She likes Assam"))
		},
	} {
		service.heard = nil
		service.fails("OpenSession", refused(codes.PermissionDenied, "CEILING_EXCEEDED"))

		equal(t, muniment.ReasonOf(call()), munimentv1.ErrorReason_ERROR_REASON_CEILING_EXCEEDED)
		equal(t, service.heard, []string{"OpenSession"})
	}
}

func TestACallThatSucceededSucceedsEvenIfItsSessionCannotBeClosed(t *testing.T) {
	for _, closing := range []error{
		refused(codes.Unavailable, "UNAVAILABLE"),
		refused(codes.Unauthenticated, "CREDENTIAL_INVALID"), // closed by its host meanwhile
	} {
		service, conn := serve(t)
		service.fails("CloseSession", closing)

		equal(t, search(t, ofApplication(conn)), nil)
		equal(t, service.heard, []string{"OpenSession", "SearchPassages", "CloseSession"})
		equal(t, service.ttl, time.Hour) // and not a day
	}
}

func TestTheFailureOfACallIsNotThatOfClosingItsSession(t *testing.T) {
	service, conn := serve(t)
	service.fails("SearchPassages", refused(codes.InvalidArgument, "FIELD_INVALID"))
	service.fails("CloseSession", refused(codes.Unavailable, "UNAVAILABLE"))

	err := search(t, ofApplication(conn))

	equal(t, err, "muniment: FIELD_INVALID: it is so")
	equal(t, service.heard, []string{"OpenSession", "SearchPassages", "CloseSession"})
}
