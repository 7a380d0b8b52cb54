// Package muniment is the Go client of Muniment: memory for AI agents that keeps to information-flow levels.
//
// [Connect] gives a [Conn]. With a host key it becomes a [Host], with a session's token a [Session]: the generated
// clients of the contract, which is the package muniment.example/clients/go/gen/muniment/v1. What the Conn adds to each call
// is the credential, a deadline, retries where they are safe, and errors that say what to do about them.
package muniment

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const (
	defaultTimeout = 10 * time.Second
	longestTimeout = 24 * time.Hour
)

// A server that restarts is found again within a second, so that calls whose deadline is ten seconds survive it.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 20 * time.Second,
}

// A connection that has fallen silent during a call is asked whether anyone is there, and given up without an answer.
var asking = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}

// An Option changes how [Connect] connects, or how calls are made.
type Option func(*settings) error

type settings struct {
	tls     *tls.Config
	timeout time.Duration
	once    bool
}

// WithTLS encrypts the connection. A nil config trusts the authorities of the system.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		s.tls = config
		return nil
	}
}

// WithCAFile encrypts the connection and trusts the certificates in a PEM file, and no others.
func WithCAFile(path string) Option {
	return func(s *settings) error {
		pem, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s holds no certificate in PEM", path)
		}
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
		return nil
	}
}

// WithTimeout sets the deadline of each call whose context has none. It spans all attempts. The default is 10 seconds,
// the most a day.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 || timeout > longestTimeout {
			return errors.New("a timeout is more than 0 and at most a day")
		}
		s.timeout = timeout
		return nil
	}
}

// WithoutRetries makes every call once. By default, a call is made again until its deadline where that is safe.
func WithoutRetries() Option {
	return func(s *settings) error {
		s.once = true
		return nil
	}
}

// Connect makes a connection to the server at host:port, dns:///host:port or unix:/path.
//
// Without [WithTLS] or [WithCAFile] only a loopback address or a unix socket will do, because a credential would cross
// a network in the clear. Nothing is sent before the first call. The Conn may be used by several goroutines.
func Connect(address string, options ...Option) (*Conn, error) {
	s := settings{timeout: defaultTimeout}
	for _, apply := range options {
		if err := apply(&s); err != nil {
			return nil, fmt.Errorf("muniment: %w", err)
		}
	}
	pool, err := openPool(func() (*grpc.ClientConn, error) { return openChannel(address, s.tls) })
	if err != nil {
		return nil, fmt.Errorf("muniment: %w", err)
	}
	return &Conn{pool: pool, timeout: s.timeout, once: s.once}, nil
}

func openChannel(address string, config *tls.Config) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithConnectParams(reconnecting),
		grpc.WithKeepaliveParams(asking),
		// What may be repeated is decided in this package, and not by a record in the DNS.
		grpc.WithDisableServiceConfig(),
	}
	switch mistake := addressMistake(address); {
	case address == "":
		return nil, errors.New("an address is needed: host:port or unix:/path")
	case mistake != nil:
		return nil, mistake
	case config != nil:
		options = append(options, grpc.WithTransportCredentials(encrypted{credentials.NewTLS(config), address}))
	case isLocal(address):
		// A proxy named by the environment would get the credential in the clear, even on the way to loopback.
		options = append(options, grpc.WithTransportCredentials(openPlaintext(address)), grpc.WithNoProxy())
	default:
		return nil, errors.New("without TLS only a loopback address or a unix socket will do," +
			" because the credential would cross a network in the clear: " + turnOn)
	}
	return grpc.NewClient(address, options...)
}

// isLocal says whether what is sent to address stays on this machine. What is not understood does not.
func isLocal(address string) bool {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "unix-abstract:") {
		return true
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(address, "dns:///"))
	if err != nil {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// HostFromEnv connects to MUNIMENT_ADDRESS with the host key MUNIMENT_HOST_KEY. With MUNIMENT_TLS_CA, a PEM file, it is
// as if [WithCAFile] came before the options.
func HostFromEnv(options ...Option) (*Host, error) {
	return fromEnv("MUNIMENT_HOST_KEY", (*Conn).Host, options)
}

// SessionFromEnv connects to MUNIMENT_ADDRESS with the session's token MUNIMENT_TOKEN, and with MUNIMENT_TLS_CA as
// [HostFromEnv] does.
func SessionFromEnv(options ...Option) (*Session, error) {
	return fromEnv("MUNIMENT_TOKEN", (*Conn).Session, options)
}

func fromEnv[T any](variable string, made func(*Conn, string) (T, error), options []Option) (T, error) {
	var none T
	if ca := strings.TrimSpace(os.Getenv("MUNIMENT_TLS_CA")); ca != "" {
		options = append([]Option{WithCAFile(ca)}, options...)
	}
	conn, err := Connect(strings.TrimSpace(os.Getenv("MUNIMENT_ADDRESS")), options...)
	if err != nil {
		return none, fmt.Errorf("%w: see MUNIMENT_ADDRESS and MUNIMENT_TLS_CA", err)
	}
	holder, err := made(conn, strings.TrimSpace(os.Getenv(variable)))
	if err != nil {
		return none, errors.Join(fmt.Errorf("%w: see %s", err, variable), conn.Close())
	}
	return holder, nil
}
