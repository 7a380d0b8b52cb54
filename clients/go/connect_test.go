package muniment_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	muniment "muniment.example/clients/go"
	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

func TestInTheClearOnlyOnThisMachine(t *testing.T) {
	local := []string{
		"127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1", "LOCALHOST:1", "dns:///localhost:1", "unix:/run/s", "unix-abstract:s",
	}
	remote := []string{
		"192.0.2.1:1", "example:1", "localhost.example:1", "127.0.0.1.example:1", "[2001:db8::1]:1", "dns:///example:1",
		"dns://localhost/example:1", "passthrough:///192.0.2.1:1", "passthrough:localhost:1", "127.0.0.1", "",
	}
	for _, address := range local {
		conn, err := muniment.Connect(address)
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		_ = conn.Close()
	}
	for _, address := range remote {
		if _, err := muniment.Connect(address); err == nil {
			t.Errorf("%q was let through", address)
		}
	}
}

func TestAnAddressWithoutAPort(t *testing.T) {
	for _, address := range []string{"localhost", "127.0.0.1", "[::1]", "dns:///localhost", "example"} {
		for _, options := range [][]muniment.Option{nil, {muniment.WithTLS(nil)}} {
			if _, err := muniment.Connect(address, options...); err == nil || !strings.Contains(err.Error(), "has no port") {
				t.Errorf("%q: %v", address, err)
			}
		}
	}
}

func TestAnUnixSocket(t *testing.T) {
	f := serveUnix(t)

	_, err := sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())

	if err != nil {
		t.Fatal(err)
	}
}

func TestTLSWithItsAuthority(t *testing.T) {
	certificate, ca := selfSigned(t)
	f := serveTLS(t, certificate)

	_, err := sessionOf(t, connect(t, f, muniment.WithCAFile(ca))).SaveMemory(t.Context(), saveRequest())

	if err != nil {
		t.Fatal(err)
	}
}

func TestTLSWithAnotherAuthoritySendsNothing(t *testing.T) {
	certificate, _ := selfSigned(t)
	_, other := selfSigned(t)
	f := serveTLS(t, certificate)
	for name, option := range map[string]muniment.Option{"other": muniment.WithCAFile(other), "system": muniment.WithTLS(nil)} {
		conn := connect(t, f, option, muniment.WithoutRetries())

		_, err := sessionOf(t, conn).SaveMemory(t.Context(), saveRequest())

		if status.Code(err) != codes.Unavailable || len(f.calls("SaveMemory")) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]muniment.Option{
		"no file":        muniment.WithCAFile(empty + ".none"),
		"no certificate": muniment.WithCAFile(empty),
		"no time":        muniment.WithTimeout(0),
		"too long":       muniment.WithTimeout(24*time.Hour + 1),
	} {
		if _, err := muniment.Connect("localhost:1", option); err == nil {
			t.Errorf("%s was let through", name)
		}
	}
}

func TestTheEnvironment(t *testing.T) {
	f := serve(t)
	t.Setenv("MUNIMENT_ADDRESS", f.address)
	t.Setenv("MUNIMENT_TLS_CA", "")
	t.Setenv("MUNIMENT_HOST_KEY", hostKey+"\n")
	t.Setenv("MUNIMENT_TOKEN", token)
	host, err := muniment.HostFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Conn().Close()
	session, err := muniment.SessionFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Conn().Close()

	_, _ = host.GetAgent(t.Context(), &munimentv1.GetAgentRequest{AgentId: "ada"})
	_, _ = session.SaveMemory(t.Context(), saveRequest())

	if got := f.calls("GetAgent")[0].authorization; !slices.Equal(got, []string{"Bearer " + hostKey}) {
		t.Error(got)
	}
	if got := f.calls("SaveMemory")[0].authorization; !slices.Equal(got, []string{"Bearer " + token}) {
		t.Error(got)
	}
}

func TestTheEnvironmentMayNameAnAuthority(t *testing.T) {
	certificate, ca := selfSigned(t)
	f := serveTLS(t, certificate)
	t.Setenv("MUNIMENT_ADDRESS", f.address)
	t.Setenv("MUNIMENT_TOKEN", token)
	t.Setenv("MUNIMENT_TLS_CA", ca+"\n")
	session, err := muniment.SessionFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Conn().Close()
	if _, err := session.SaveMemory(t.Context(), saveRequest()); err != nil {
		t.Error(err)
	}

	_, other := selfSigned(t)
	own, err := muniment.SessionFromEnv(muniment.WithCAFile(other), muniment.WithoutRetries())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Conn().Close()
	if _, err := own.SaveMemory(t.Context(), saveRequest()); status.Code(err) != codes.Unavailable {
		t.Errorf("what the program says does not stand: %v", err)
	}

	t.Setenv("MUNIMENT_TLS_CA", ca+".none")
	if _, err := muniment.SessionFromEnv(); err == nil || !strings.Contains(err.Error(), "MUNIMENT_TLS_CA") {
		t.Error(err)
	}
}

func TestAnEnvironmentThatIsNotWholeSaysWhatIsMissing(t *testing.T) {
	t.Setenv("MUNIMENT_ADDRESS", "localhost:1")
	t.Setenv("MUNIMENT_TLS_CA", "")
	t.Setenv("MUNIMENT_HOST_KEY", "")
	if _, err := muniment.HostFromEnv(); err == nil || !strings.Contains(err.Error(), "MUNIMENT_HOST_KEY") {
		t.Error(err)
	}
	t.Setenv("MUNIMENT_ADDRESS", "")
	if _, err := muniment.HostFromEnv(); err == nil || !strings.Contains(err.Error(), "MUNIMENT_ADDRESS") {
		t.Error(err)
	}
}

func TestNoCredentialWithoutOne(t *testing.T) {
	f := serve(t)

	_, err := munimentv1.NewAgentServiceClient(connect(t, f)).GetAgent(t.Context(), &munimentv1.GetAgentRequest{AgentId: "ada"})

	if got := f.calls("GetAgent")[0].authorization; err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func TestWhatNoHeaderCarriesIsRefusedWithoutBeingShown(t *testing.T) {
	conn := connect(t, serve(t))
	for _, credential := range []string{"", "mun_s_1_secret\n", "mun s secret", "mun_s_1_secrét"} {
		if _, err := conn.Session(credential); err == nil || strings.Contains(err.Error(), "secr") {
			t.Errorf("%q: %v", credential, err)
		}
	}
}

func TestACredentialIsNeverPrinted(t *testing.T) {
	conn := connect(t, serve(t))
	host, session := hostOf(t, conn), sessionOf(t, conn)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, shown := range []any{host, *host, host.Conn(), *host.Conn(), session, *session, session.Conn()} {
			if text := fmt.Sprintf(verb, shown); strings.Contains(text, hostKey) || strings.Contains(text, token) {
				t.Errorf("%s of %T: %s", verb, shown, text)
			}
		}
	}
}

func TestASessionThatWasOpenedHasItsToken(t *testing.T) {
	f := serve(t)
	f.replies["OpenSession"] = &munimentv1.OpenSessionResponse{Token: token, Session: &munimentv1.Session{SessionId: "s1"}}
	f.replies["ResetSession"] = &munimentv1.ResetSessionResponse{Token: token + "2", Session: &munimentv1.Session{SessionId: "s2"}}
	host := hostOf(t, connect(t, f))

	opened, err := host.OpenSession(t.Context(), &munimentv1.OpenSessionRequest{AgentId: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	reset, err := host.ResetSession(t.Context(), &munimentv1.ResetSessionRequest{SessionId: opened.Opened.GetSessionId()})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = reset.SaveMemory(t.Context(), saveRequest())

	if opened.Token() != token || opened.Opened.GetSessionId() != "s1" || reset.Opened.GetSessionId() != "s2" {
		t.Error(opened.Opened, reset.Opened)
	}
	if got := f.calls("SaveMemory")[0].authorization; !slices.Equal(got, []string{"Bearer " + token + "2"}) {
		t.Error(got)
	}
}

func TestADeadlineByDefault(t *testing.T) {
	f := serve(t)
	session := sessionOf(t, connect(t, f, muniment.WithTimeout(time.Minute)))
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()

	_, _ = sessionOf(t, connect(t, f)).SaveMemory(t.Context(), saveRequest())
	_, _ = session.SaveMemory(t.Context(), saveRequest())
	_, _ = session.SaveMemory(short, saveRequest())

	for i, most := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Second} {
		if left := f.calls("SaveMemory")[i].left; left > most || left < most-4*time.Second {
			t.Errorf("%v of %v", left, most)
		}
	}
}

// selfSigned is a certificate for 127.0.0.1 and the file that vouches for it.
func selfSigned(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
