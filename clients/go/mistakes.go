package muniment

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// turnOn is the end of a message about a server that expects TLS.
const turnOn = "turn TLS on by WithTLS, WithCAFile or MUNIMENT_TLS_CA"

var (
	url         = regexp.MustCompile(`^(?i:(https?|grpcs?|tcp)://)(?:[^/@]*@)?([^/?#]*)`)
	withoutPort = regexp.MustCompile(`^(?:\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):?$`)
)

// addressMistake says what is wrong with an address that gRPC would misunderstand, or nil.
func addressMistake(address string) error {
	if parts := url.FindStringSubmatch(address); parts != nil {
		remedy := "give host:port alone, such as " + parts[2]
		if strings.HasSuffix(strings.ToLower(parts[1]), "s") {
			remedy += ", and " + turnOn
		}
		return fmt.Errorf("an address has no scheme such as %s://: %s", parts[1], remedy)
	}
	target := strings.TrimPrefix(address, "dns:///")
	_, err := netip.ParseAddr(target)
	if err == nil || withoutPort.MatchString(target) {
		// gRPC would try port 443.
		complete := net.JoinHostPort(strings.Trim(strings.TrimSuffix(target, ":"), "[]"), "50051")
		return fmt.Errorf("%s has no port: give host:port, such as %s, or unix:/path", address, complete)
	}
	return nil
}

// encrypted connects with TLS. The error of a failed handshake says what is wrong, and what to do.
type encrypted struct {
	credentials.TransportCredentials
	address string
}

func (e encrypted) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := e.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, e.mistake(err)
	}
	return conn, info, nil
}

func (e encrypted) Clone() credentials.TransportCredentials {
	return encrypted{e.TransportCredentials.Clone(), e.address}
}

func (e encrypted) mistake(err error) error {
	var notTLS tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var otherName x509.HostnameError
	var refused *tls.CertificateVerificationError
	switch {
	case errors.As(err, &notTLS):
		return fmt.Errorf("the server at %s does not speak TLS: connect without WithTLS, WithCAFile and MUNIMENT_TLS_CA,"+
			" which is possible on its own machine, or give the server a certificate", e.address)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is signed by an authority that is not trusted: name the file of its"+
			" authority by WithCAFile or MUNIMENT_TLS_CA (%w)", e.address, err)
	case errors.As(err, &otherName):
		return fmt.Errorf("the certificate of %s is for other names: connect to one of %s",
			e.address, strings.Join(namesOf(otherName.Certificate), ", "))
	case errors.As(err, &refused):
		return fmt.Errorf("the certificate of %s is not accepted: give the server another one (%w)", e.address, refused.Err)
	}
	return err
}

// lasting matches the messages of mistakes that would make another attempt fail, too.
var lasting = regexp.MustCompile(`^the (server at \S+ (expects|does not speak) TLS|certificate of \S+ is)`)

func namesOf(certificate *x509.Certificate) []string {
	names := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// plaintext connects without TLS. Its connections fail with a remedy if the server seems to expect TLS.
type plaintext struct {
	credentials.TransportCredentials
	address string
}

func openPlaintext(address string) plaintext {
	return plaintext{insecure.NewCredentials(), address}
}

func (p plaintext) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := p.TransportCredentials.ClientHandshake(ctx, authority, raw)
	return &plaintextConn{Conn: conn, address: p.address}, info, err
}

func (p plaintext) Clone() credentials.TransportCredentials {
	return plaintext{p.TransportCredentials.Clone(), p.address}
}

type plaintextConn struct {
	net.Conn
	address string
	heard   atomic.Bool
}

// Read checks how the server begins. A server that expects TLS sends an alert, or closes the connection.
func (c *plaintextConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 && !c.heard.Swap(true) && into[0] == tlsAlert {
		return 0, c.expectsTLS()
	}
	return n, c.explained(err)
}

// Write may be what notices that the server has closed the connection.
func (c *plaintextConn) Write(from []byte) (int, error) {
	n, err := c.Conn.Write(from)
	return n, c.explained(err)
}

func (c *plaintextConn) explained(err error) error {
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case c.heard.Load() || !closed:
		return err
	case speaksTLS(c.RemoteAddr()):
		return c.expectsTLS()
	}
	return fmt.Errorf("the server at %s closed the connection without an answer", c.address)
}

func (c *plaintextConn) expectsTLS() error {
	return fmt.Errorf("the server at %s expects TLS: %s", c.address, turnOn)
}

// speaksTLS reports whether a server completes a TLS handshake. It sends nothing else.
func speaksTLS(server net.Addr) bool {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	config := tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	conn, err := tls.DialWithDialer(&dialer, server.Network(), server.String(), &config)
	return err == nil && conn.Close() == nil
}

// tlsAlert is the type of the TLS record that reports a refusal (RFC 8446, section 5.1).
const tlsAlert = 21

// withoutWrapping returns the message of a failed connection without the text that gRPC puts around it.
func withoutWrapping(message string) string {
	_, quoted, found := strings.Cut(message, "connection error: desc = ")
	if !found {
		return message
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return message
	}
	for _, prefix := range wrappings {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

var wrappings = []string{
	"transport: authentication handshake failed: ", "transport: failed to write client preface: ", "transport: failed to write initial settings frame: ",
	"error reading server preface: ", "transport: Error while dialing: ",
}
