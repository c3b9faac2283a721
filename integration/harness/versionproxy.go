package harness

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// versionProxy forwards connections to a daemon, but refuses the protocols that
// a release of Slurm no longer accepts or does not have yet, as the daemons of a
// development snapshot of 26.11 do.
type versionProxy struct {
	port     int
	mu       sync.Mutex
	accepted map[codec.Version]int // connections by protocol
}

// newVersionProxy starts a proxy that forwards connections to daemonPort on the
// loopback interface. The proxy runs until the test ends.
func newVersionProxy(t *testing.T, daemonPort int, oldest, newest codec.Version) *versionProxy {
	t.Helper()
	p := &versionProxy{accepted: map[codec.Version]int{}}
	p.port = serveConns(t, func(in net.Conn) {
		ForwardProtocols(in, fmt.Sprintf("127.0.0.1:%d", daemonPort), oldest, newest, func(v codec.Version) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.accepted[v]++
		})
	})
	return p
}

// ForwardProtocols forwards a connection of the gateway to the daemon at
// address, or refuses it if its protocol is older than oldest or newer than
// newest. The first message has the protocol of the whole connection. Before
// ForwardProtocols forwards it, it calls accepted.
func ForwardProtocols(in net.Conn, address string, oldest, newest codec.Version, accepted func(codec.Version)) {
	first, err := wire.Read(in, 1<<30)
	if err != nil || len(first) < 4 {
		return // a connection that was opened in advance
	}
	session := message.Type(binary.BigEndian.Uint16(first)) == message.RequestPersistInit
	v := codec.Version(first[0])
	if session {
		v = codec.Version(first[2])
	}
	if v < oldest || v > newest {
		if !session {
			io.WriteString(in, "HTTP/1.1 405 Method Not Allowed\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n")
		} else if refusal, err := message.EncodePersistent(oldest, message.AccountingRC, &message.PersistRC{Code: fault.ProtocolVersion}); err == nil {
			in.Write(refusal)
		}
		return
	}
	accepted(v)
	out, err := net.Dial("tcp4", address)
	if err != nil {
		return // the daemon is down, so the gateway's connection ends
	}
	defer out.Close()
	if _, err := out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(first))), first...)); err != nil {
		return
	}
	forwardConn(in, out)
}

// accepts returns the protocols of the connections so far, with their numbers.
func (p *versionProxy) accepts() map[codec.Version]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.accepted)
}

// VersionedGateway is a gateway before daemons that accept only some protocols.
type VersionedGateway struct {
	*Gateway
	Address  string
	ctl, dbd *versionProxy
}

// StartVersioned starts a gateway before daemons that refuse protocols older
// than oldest or newer than newest.
func (l *Lab) StartVersioned(t *testing.T, oldest, newest codec.Version) *VersionedGateway {
	t.Helper()
	g := &VersionedGateway{
		Address: fmt.Sprintf("127.0.0.1:%d", FreePort(t)),
		ctl:     newVersionProxy(t, l.Controller, oldest, newest), dbd: newVersionProxy(t, l.Accounting, oldest, newest),
	}
	conf, noKey := fmt.Sprintf("protocols-%d-%d.conf", oldest, newest), "jwt_key="+filepath.Join(l.Dir, "etc", "there-is-none")
	g.Gateway = l.startBehind(t, conf, g.Address, g.ctl.port, g.dbd.port, noKey)
	return g
}

// Protocols returns the protocols that the daemons have accepted, with the
// numbers of connections.
func (g *VersionedGateway) Protocols() (controller, accounting map[codec.Version]int) {
	return g.ctl.accepts(), g.dbd.accepts()
}
