package muniment_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	muniment "muniment.example/clients/go"
)

func TestAnAddressThatGRPCWouldMisunderstand(t *testing.T) {
	for address, said := range map[string]string{
		"http://127.0.0.1:50051":          "no scheme such as http://: give host:port alone, such as 127.0.0.1:50051",
		"HTTPS://muniment.example:443/v1": "such as muniment.example:443, and turn TLS on",
		"grpc://localhost:1":              "such as localhost:1",
		"grpcs://ada:secret@localhost:1":  "such as localhost:1, and",
		"localhost":                       "localhost has no port: give host:port, such as localhost:50051",
		"localhost:":                      "such as localhost:50051",
		"::1":                             "such as [::1]:50051",
		"[::1]":                           "such as [::1]:50051",
		"dns:///muniment.example":         "such as muniment.example:50051",
		"":                                "an address is needed: host:port",
		"192.0.2.1:1":                     "turn TLS on by WithTLS, WithCAFile or MUNIMENT_TLS_CA",
	} {
		_, err := muniment.Connect(address)
		if err == nil || !strings.Contains(err.Error(), said) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// unanswered is what a call over a connection says that cannot be made. If it were retried, the test would time out.
func unanswered(t *testing.T, address string, options ...muniment.Option) string {
	t.Helper()
	f := &fake{address: address}
	options = append([]muniment.Option{muniment.WithTimeout(day)}, options...)
	_, err := sessionOf(t, connect(t, f, options...)).SaveMemory(t.Context(), saveRequest())
	if status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	return err.Error()
}

const day = 24 * time.Hour

const turnOn = "turn TLS on by WithTLS, WithCAFile or MUNIMENT_TLS_CA"

// Servers of gRPC close the connection.
func TestPlaintextToAServerThatExpectsTLS(t *testing.T) {
	certificate, _ := selfSigned(t)
	address := serveTLS(t, certificate).address

	said := unanswered(t, address)

	if said != "muniment: Unavailable: the server at "+address+" expects TLS: "+turnOn {
		t.Error(said)
	}
}

func TestPlaintextToAServerThatRefusesItAsTLSDoes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go refuseEach(listener)
	address := listener.Addr().String()

	said := unanswered(t, address)

	if said != "muniment: Unavailable: the server at "+address+" expects TLS: "+turnOn {
		t.Error(said)
	}
}

// refuseEach answers what comes first with an alert: a fatal one, of an unexpected message.
func refuseEach(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1024))
		_, _ = conn.Write([]byte{21, 3, 1, 0, 2, 2, 10})
		_ = conn.Close()
	}
}

func TestTLSToAServerInPlaintext(t *testing.T) {
	f := serve(t)

	said := unanswered(t, f.address, muniment.WithTLS(nil))

	if !strings.Contains(said, "the server at "+f.address+" does not speak TLS: connect without") {
		t.Error(said)
	}
}

func TestACertificateOfAnAuthorityThatIsNotTrusted(t *testing.T) {
	certificate, _ := selfSigned(t)
	_, other := selfSigned(t)
	f := serveTLS(t, certificate)

	said := unanswered(t, f.address, muniment.WithCAFile(other))

	if !strings.Contains(said, "signed by an authority that is not trusted: name the file") {
		t.Error(said)
	}
}

func TestACertificateForOtherNames(t *testing.T) {
	certificate, ca := selfSigned(t)
	f := serveTLS(t, certificate)
	address := strings.Replace(f.address, "127.0.0.1", "localhost", 1)

	said := unanswered(t, address, muniment.WithCAFile(ca))

	if !strings.Contains(said, "the certificate of "+address+" is for other names: connect to one of 127.0.0.1") {
		t.Error(said)
	}
}

func TestAServerThatMayComeBackIsTriedUntilTheDeadlineAndSaysWhy(t *testing.T) {
	said := unanswered(t, "127.0.0.1:1", muniment.WithTimeout(time.Second))
	if said != "muniment: Unavailable: dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Error(said)
	}
	listener, closed := closingEach(t)
	said = unanswered(t, listener, muniment.WithTimeout(time.Second))
	if said != "muniment: Unavailable: the server at "+listener+" closed the connection without an answer" {
		t.Error(said)
	}
	if n := closed.Load(); n < 3 { // one of the first attempt, one that asks in TLS, and more
		t.Error(n)
	}
}

// closingEach listens, and closes each connection without an answer, as a proxy does whose server is not up yet.
func closingEach(t *testing.T) (address string, closed *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	closed = &atomic.Int32{}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			closed.Add(1)
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), closed
}

func TestACertificateThatHasExpired(t *testing.T) {
	certificate, ca := selfSigned(t)
	f := serveTLS(t, certificate)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(read(t, ca)))
	config := &tls.Config{RootCAs: trusted, Time: func() time.Time { return time.Now().Add(48 * time.Hour) }}
	if said := unanswered(t, f.address, muniment.WithTLS(config)); !strings.Contains(said, "is not accepted: give the server another one (x509: certificate has expired") {
		t.Error(said)
	}
}
