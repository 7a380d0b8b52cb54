// Command grpc_go answers GetMemory with one SELECT, as tests/tools/bench/bare.py does in Python: what a gRPC server over
// Postgres costs in Go.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

const selectContent = `
SELECT content
  FROM item
 WHERE tenant = $1 AND agent = $2 AND kind = 1 AND name = $3 AND delete_time IS NULL`

type bare struct {
	munimentv1.UnimplementedMemoryServiceServer
	pool          *pgxpool.Pool
	tenant, agent int64
}

// GetMemory returns one memory; an error if there is none.
func (b *bare) GetMemory(
	ctx context.Context, request *munimentv1.GetMemoryRequest,
) (*munimentv1.GetMemoryResponse, error) {
	var content string
	row := b.pool.QueryRow(ctx, selectContent, b.tenant, b.agent, request.GetKey())
	if err := row.Scan(&content); err != nil {
		return nil, err
	}
	memory := &munimentv1.Memory{Key: request.GetKey(), Content: content}
	return &munimentv1.GetMemoryResponse{Memory: memory}, nil
}

// main serves until the standard input ends: grpc_go ADDRESS CONNECTIONS CONNINFO TENANT AGENT.
func main() {
	if err := serve(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func serve(arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("want 5 arguments, got %d", len(arguments))
	}
	numbers := make([]int64, 0, 3)
	for _, position := range []int{1, 3, 4} {
		number, err := strconv.ParseInt(arguments[position], 10, 64)
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	config, err := pgxpool.ParseConfig(arguments[2])
	if err != nil {
		return err
	}
	config.MaxConns = int32(numbers[0])
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return err
	}
	defer pool.Close()
	listener, err := net.Listen("tcp", arguments[0])
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	munimentv1.RegisterMemoryServiceServer(server, &bare{pool: pool, tenant: numbers[1], agent: numbers[2]})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	server.GracefulStop()
	return <-failed
}
