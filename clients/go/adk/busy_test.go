package adk_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	muniment "muniment.example/clients/go"
	"muniment.example/clients/go/adk"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// busy is a server that refuses the first two imports, as a real one does if many of one agent come at once.
type busy struct {
	munimentv1.UnimplementedMemoryServiceServer
	munimentv1.UnimplementedPassageServiceServer
	imports int
}

func (*busy) ListMemories(context.Context, *munimentv1.ListMemoriesRequest) (*munimentv1.ListMemoriesResponse, error) {
	return &munimentv1.ListMemoriesResponse{}, nil
}

func (b *busy) ImportPassages(
	stream grpc.ClientStreamingServer[munimentv1.ImportPassagesRequest, munimentv1.ImportPassagesResponse],
) error {
	if b.imports++; b.imports > 2 {
		return stream.SendAndClose(&munimentv1.ImportPassagesResponse{})
	}
	refused, err := status.New(codes.ResourceExhausted, "busy").WithDetails(
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	if err != nil {
		return err
	}
	return refused.Err()
}

func TestAnAddIsMadeAgain(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server, service := grpc.NewServer(), &busy{}
	munimentv1.RegisterMemoryServiceServer(server, service)
	munimentv1.RegisterPassageServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn := must(muniment.Connect(listener.Addr().String()))
	t.Cleanup(func() { _ = conn.Close() })

	add(t, adk.NewMemoryService(must(conn.Session("mun_s_1_token"))), conversation("one", "ada", "She likes Assam"))

	equal(t, service.imports, 3)
}
