package broker

import (
	"context"
	"net"
	"sync/atomic"

	"schedrestd/become"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/sack"
)

// munge returns a MUNGE client, or nil if MUNGE is not configured. The
// client accepts a server that runs as root or as the owner of the MUNGE
// socket's directory.
func (d *dialer) munge(m work.Munge, upstream work.Upstream, socket string) *munge.Client {
	if m.Socket == "" {
		return nil
	}
	var owner owner
	return &munge.Client{Socket: socket, TTL: m.TTL,
		Dial: func(ctx context.Context, path string) (net.Conn, error) {
			nc, uid, err := d.open(ctx, upstream, 0, client.Address{Network: "unix", Address: path})
			return owner.record(nc, uid, err)
		},
		Trusted: owner.allows,
	}
}

// sack returns a client that requests auth/slurm credentials, or nil if
// auth/slurm is not configured. The client accepts a server that runs as root,
// as the owner of the socket's directory, or as the scheduler's user. sackd and
// slurmctld run as the scheduler's user, but root may own the directory.
func (d *dialer) sack(sockets []string, sched uint32) *sack.Client {
	if len(sockets) == 0 {
		return nil
	}
	owners := make([]owner, len(sockets))
	return &sack.Client{Sockets: sockets,
		Dial: func(ctx context.Context, i int) (net.Conn, error) {
			nc, uid, err := d.open(ctx, work.UpstreamSack, uint8(i), client.Address{Network: "unix", Address: sockets[i]})
			return owners[i].record(nc, uid, err)
		},
		Trusted: func(i int, uid uint32) bool { return uid == sched || owners[i].allows(uid) },
	}
}

// An owner holds the uid of the owner of a socket's directory. The uid is known
// once the socket has been dialled.
type owner struct{ uid atomic.Uint32 }

func (o *owner) record(nc net.Conn, uid uint32, err error) (net.Conn, error) {
	if err == nil {
		o.uid.Store(uid)
	}
	return nc, err
}

// allows reports whether the server of the socket may run as uid.
func (o *owner) allows(uid uint32) bool {
	return uid == 0 || uid == o.uid.Load() && uid != become.Overflow
}
