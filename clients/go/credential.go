package muniment

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// A credential is what calls are made with. It may be renewed between two calls.
type credential interface {
	// fresh returns the one for a call that begins now.
	fresh(ctx context.Context) *held
	// replacement returns another one for a call that was refused, and so not executed. It is nil if the refusal stands.
	replacement(ctx context.Context, sent *held, refusal error) (*held, error)
}

// held is one host key or token. As a credential, it stays the same.
type held struct {
	bearer bearer
	// The session that the host opened, and when to renew it, if it is one of a conversation.
	session *munimentv1.Session
	due     time.Time
}

func hold(credential string) (*held, error) {
	if credential == "" {
		return nil, errors.New("muniment: there is no credential")
	}
	if !isVisible(credential) {
		// Not even the message shows a credential.
		return nil, errors.New("muniment: a credential is visible ASCII characters: is there a line end in it?")
	}
	return &held{bearer: func() string { return "Bearer " + credential }}, nil
}

func (h *held) fresh(context.Context) *held { return h }

func (h *held) replacement(context.Context, *held, error) (*held, error) { return nil, nil }

// option sends it with a call. No held one sends none.
func (h *held) option() []grpc.CallOption {
	if h == nil {
		return nil
	}
	return []grpc.CallOption{grpc.PerRPCCredentials(h.bearer)}
}

func (h *held) token() string {
	return strings.TrimPrefix(h.bearer(), "Bearer ")
}

// bearer sends a credential with each call. It is a function, so that nothing that prints or dumps a Conn shows it.
type bearer func() string

var _ credentials.PerRPCCredentials = bearer(nil)

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": b()}, nil
}

// RequireTransportSecurity is false: openChannel has made sure that what is not encrypted stays on this machine.
func (bearer) RequireTransportSecurity() bool { return false }

func isVisible(credential string) bool {
	return credential != "" && strings.IndexFunc(credential, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// authorized sends a call with the credential, and once more with another if that helps.
func authorized(ctx context.Context, with credential, send func(*held) error) error {
	if with == nil {
		return send(nil)
	}
	sent := with.fresh(ctx)
	refusal := send(sent)
	if refusal == nil {
		return nil
	}
	other, err := with.replacement(ctx, sent, refusal)
	if err != nil {
		return err
	}
	if other == nil {
		return refusal
	}
	err = send(other)
	if status.Code(err) == codes.Unauthenticated && status.Code(refusal) != codes.Unauthenticated {
		return refusal
	}
	return err
}
