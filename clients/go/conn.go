package muniment

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// A Conn is up to four connections to a server, with a credential or (as [Connect] makes it) without.
//
// It is a [grpc.ClientConnInterface], so that every generated client works over it. Each call gets a deadline, is made
// again where that is safe, and fails with an [*Error].
type Conn struct {
	pool       *pool
	credential credentials.PerRPCCredentials
	timeout    time.Duration
	once       bool
}

// WithCredential gives the same connection to the holder of a host key or a session's token.
//
// [Conn.Host] and [Conn.Session] are made of it; by itself it is for generated clients that those do not have.
func (c *Conn) WithCredential(credential string) (*Conn, error) {
	if credential == "" {
		return nil, errors.New("muniment: there is no credential")
	}
	if !isVisible(credential) {
		// Not even the message shows a credential.
		return nil, errors.New("muniment: a credential is visible ASCII characters: is there a line end in it?")
	}
	lent := *c
	lent.credential = bearer(func() string { return "Bearer " + credential })
	return &lent, nil
}

// Close closes the connection, and with it all that came from it by WithCredential, Host and Session. On the server no
// session ends by it.
func (c *Conn) Close() error {
	return c.pool.close()
}

// Invoke makes a unary call. Generated clients call it.
func (c *Conn) Invoke(ctx context.Context, method string, request, response any, options ...grpc.CallOption) error {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	safe := mayRepeat(method, request)
	return repeat(ctx, func() (bool, error) {
		channel, giveBack := c.pool.take()
		defer giveBack()
		var sentTo peer.Peer
		var trailers metadata.MD
		options := append(c.with(options), grpc.Peer(&sentTo), grpc.Trailer(&trailers))
		err := unsendable(channel.Invoke(ctx, method, request, response, options...), request)
		// Without a peer there was no connection to send anything over.
		sent := sentTo.Addr != nil
		if sent && ctx.Err() == nil {
			err = brokenOff(err)
		}
		return !c.once && passes(err) && (safe || !sent), errorOf(err, trailers)
	})
}

// NewStream begins a stream. Generated clients call it. The deadline is that of the whole stream, which is never made
// again.
func (c *Conn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := c.withDeadline(ctx)
	channel, giveBack := c.pool.take()
	context.AfterFunc(ctx, giveBack)
	stream, err := channel.NewStream(ctx, desc, method, c.with(options)...)
	if err != nil {
		cancel()
		return nil, errorOf(err, nil)
	}
	return &clientStream{ClientStream: stream, oneAnswer: !desc.ServerStreams, ended: ctx.Err, cancel: cancel}, nil
}

func (c *Conn) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, given := ctx.Deadline(); given {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.timeout)
}

func (c *Conn) with(options []grpc.CallOption) []grpc.CallOption {
	if c.credential == nil {
		return slices.Clone(options)
	}
	return append([]grpc.CallOption{grpc.PerRPCCredentials(c.credential)}, options...)
}

// clientStream is a stream whose errors are ours, and which lets go of its context at its end.
type clientStream struct {
	grpc.ClientStream
	oneAnswer bool
	ended     func() error // why the context ended, which that of ClientStream also does at the end of the stream
	cancel    context.CancelFunc
	refused   error // why SendMsg gave the stream up
}

func (s *clientStream) SendMsg(message any) error {
	err := errorOf(unsendable(s.ClientStream.SendMsg(message), message), nil)
	// An io.EOF says that the stream is over: RecvMsg says why.
	if !errors.Is(err, io.EOF) {
		s.refused = err
	}
	return err
}

func (s *clientStream) RecvMsg(message any) error {
	if s.refused != nil {
		return s.refused
	}
	err := s.ClientStream.RecvMsg(message)
	if s.ended() == nil {
		err = brokenOff(err)
	}
	if err != nil || s.oneAnswer {
		s.cancel()
	}
	if err == nil {
		return nil
	}
	return errorOf(err, s.Trailer())
}

// bearer sends a credential with each call. It is a function, so that nothing that prints or dumps a Conn shows it.
type bearer func() string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": b()}, nil
}

// RequireTransportSecurity is false: openChannel has made sure that what is not encrypted stays on this machine.
func (bearer) RequireTransportSecurity() bool { return false }

func isVisible(credential string) bool {
	return credential != "" && strings.IndexFunc(credential, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}
