package muniment_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	munimentv1 "muniment.example/clients/go/gen/muniment/v1"
)

// counted counts the connections that it accepts.
type counted struct {
	net.Listener
	accepted atomic.Int32
}

func (l *counted) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return connection, err
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 20 seconds")
		}
	}
}

func TestCallsAtOnceHaveUpToFourConnections(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &counted{Listener: inner}
	f := serveOn(t, listener, inner.Addr().String())
	session := sessionOf(t, connect(t, f))
	for range 10 {
		if _, err := session.SaveMemory(t.Context(), saveRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if one := listener.accepted.Load(); one != 1 {
		t.Errorf("%d connections for one call at a time", one)
	}

	f.mu.Lock() // no call is answered until there are eight
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { _, _ = session.GetMemory(t.Context(), &munimentv1.GetMemoryRequest{Key: "tea"}) })
	}
	waitFor(t, func() bool { return listener.accepted.Load() == 4 })
	f.mu.Unlock()
	calls.Wait()

	if all := listener.accepted.Load(); all != 4 {
		t.Errorf("%d connections for eight calls at a time", all)
	}
}
