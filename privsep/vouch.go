package privsep

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
)

// vouchTime is how long the keeper's word for a user counts. An honest keeper gives
// it again while tokens of the user are in use.
const vouchTime = time.Minute

// connectKeeper gives a keeper a channel to this process, on which it can vouch for
// users, and one to the resolver of its generation. Before that, it sends the keys.
func (m *monitor) connectKeeper(g *generation, keeper *spawn.Child) error {
	channel, vouchFD, err := ipc.Pair(ipc.Acceptor, ipc.Keeper)
	if err != nil {
		return err
	}
	defer unix.Close(vouchFD)
	g.vouches = channel
	go m.receiveVouches(keeper, channel)
	secret, fds := g.keys.KeeperMessage()
	secret.Stamps = secret.Stamps || g.config.Switches.Credentials
	return cmp.Or(ipc.IgnoreClosed(keeper.Channel.TrySend(secret, fds...)),
		introduce(ipc.Resolver, func(fd int) error { return keeper.Channel.TrySend(new(ipc.KeeperChannels), vouchFD, fd) }, g.resolver))
}

// introduce makes a channel between a keeper and the resolver, or a process that gets
// the credentials of a user for whom the keeper has vouched. The dispatcher has no part
// in it, since it might be captured.
func introduce(peer ipc.Role, toKeeper func(fd int) error, to *ipc.Channel) error {
	channel, peerFD, err := ipc.Pair(ipc.Keeper, peer)
	if err != nil {
		return err
	}
	defer channel.Close()
	defer unix.Close(peerFD)
	return cmp.Or(ipc.IgnoreClosed(to.TrySend(new(ipc.KeeperChannel), peerFD)), ipc.IgnoreClosed(channel.WithFD(toKeeper)))
}

// receiveVouches answers a keeper until it exits or breaks the protocol.
func (m *monitor) receiveVouches(keeper *spawn.Child, channel *ipc.Channel) {
	defer channel.Close()
	limit := rate.New(vouches, time.Now())
	for {
		r, err := channel.Receive()
		switch v := r.Message.(type) {
		case nil:
		case *ipc.Vouch:
			time.Sleep(limit.Charge(time.Now(), 1+float64(len(v.Groups))/100))              // a keeper that vouches too often waits
			m.postAndWait(func() { _ = channel.TrySend(&ipc.Vouched{Client: m.vouch(v)}) }) // a keeper that does not read gets no answer
		default:
			err = ipc.Unhandled(v)
		}
		if err != nil {
			keeper.Kill()
			return
		}
	}
}

// vouch returns the number that stands for a user for whom the keeper vouches, or 0
// if no process may run as this user, or if the keeper has vouched for too many.
func (m *monitor) vouch(v *ipc.Vouch) uint64 {
	id, ok := m.service.Vouched(v)
	if s := m.config().Switches; !ok || !m.service.Root || !s.Output && !s.Credentials || s.BecomeUser || m.clients.IsFull() {
		return 0
	}
	m.clients.Vouch(v.Client, id, time.Now().Add(vouchTime))
	return v.Client
}
