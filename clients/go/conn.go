package muniment

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// A Conn is up to four connections to a server, with a credential or (as [Connect] makes it) without.
//
// It is a [grpc.ClientConnInterface], so that every generated client works over it. Each call gets a deadline, is made
// again where that is safe, and fails with an [*Error].
type Conn struct {
	pool       *pool
	credential *held
	renewals   *renewals // of a conversation
	timeout    time.Duration
	once       bool
}

// WithCredential gives the same connection to the holder of a host key or a session's token.
//
// [Conn.Host] and [Conn.Session] are made of it; by itself it is for generated clients that those do not have.
func (c *Conn) WithCredential(credential string) (*Conn, error) {
	held, err := hold(credential)
	if err != nil {
		return nil, err
	}
	return c.with(held), nil
}

func (c *Conn) with(credential *held) *Conn {
	lent := *c
	lent.credential, lent.renewals = credential, nil
	return &lent
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
		sent := false
		err := c.renewals.around(ctx, func() error {
			channel, giveBack := c.pool.take()
			defer giveBack()
			var sentTo peer.Peer
			var trailers metadata.MD
			options := append(append(c.credential.option(), options...), grpc.Peer(&sentTo), grpc.Trailer(&trailers))
			err := unsendable(channel.Invoke(ctx, method, request, response, options...), request)
			// Without a peer there was no connection to send anything over.
			sent = sentTo.Addr != nil
			if sent && ctx.Err() == nil {
				err = brokenOff(err)
			}
			failure := errorOf(err, trailers)
			sent = sent && reasonName(failure) != credentialExpired
			return failure
		})
		return !c.once && passes(err) && (safe || !sent), err
	})
}

// NewStream begins a stream. Generated clients call it. The deadline is that of the whole stream, which is never made
// again.
func (c *Conn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := c.withDeadline(ctx)
	c.renewals.fresh(ctx)
	options = append(c.credential.option(), options...)
	channel, giveBack := c.pool.take()
	context.AfterFunc(ctx, giveBack)
	stream, err := channel.NewStream(ctx, desc, method, options...)
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
