package muniment

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// held is one host key or token.
type held struct {
	bearer bearer
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
