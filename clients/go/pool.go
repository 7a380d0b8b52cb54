package muniment

import (
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc"
)

// connections is how many there are at most to one server, which gives each to one of its workers.
const connections = 4

// A pool spreads calls over several connections. A call takes the one with the fewest calls under way, the first of
// several, so that a program that makes one call at a time has one connection.
type pool struct {
	channels []*grpc.ClientConn

	mu       sync.Mutex
	underWay []int
}

func openPool(open func() (*grpc.ClientConn, error)) (*pool, error) {
	opened := &pool{underWay: make([]int, connections)}
	for range connections {
		channel, err := open()
		if err != nil {
			return nil, errors.Join(err, opened.close())
		}
		opened.channels = append(opened.channels, channel)
	}
	return opened, nil
}

// take chooses a connection for a call. giveBack says that the call has ended.
func (p *pool) take() (channel *grpc.ClientConn, giveBack func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := slices.Index(p.underWay, slices.Min(p.underWay))
	p.underWay[index]++
	return p.channels[index], func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay[index]--
	}
}

func (p *pool) close() error {
	var all []error
	for _, channel := range p.channels {
		all = append(all, channel.Close())
	}
	return errors.Join(all...)
}
