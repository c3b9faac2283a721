package dial

import (
	"errors"
	"log/slog"
	"net/netip"

	"golang.org/x/sys/unix"

	"schedrestd/privsep/netns"
	"schedrestd/privsep/thread"
	"schedrestd/sockdiag"
)

// Outlet is a thread in another network namespace, from which TCP connections to daemons begin. It stays
// there, because the parent drops the capability to enter a namespace before it serves. With a nil
// Outlet connections begin in the parent's own namespace.
type Outlet struct{ thread *thread.Thread }

// NewOutlet starts a thread in the namespace that text names (see netns.Open). It returns nil for "".
func NewOutlet(text string) (*Outlet, error) {
	s, err := netns.Open("SCHEDRESTD_CONTROLLER_NETNS", text)
	if s == nil || err != nil {
		return nil, err
	}
	defer s.Close()
	t, err := thread.Start(s.Enter)
	if err != nil {
		return nil, err
	}
	return &Outlet{t}, nil
}

// do calls job in the namespace.
func (o *Outlet) do(job func() error) (err error) {
	if o == nil {
		return job()
	}
	if !o.thread.Do(func() { err = job() }) {
		return unix.ENETDOWN
	}
	return err
}

// Check logs a warning when the kernel does not report the owners of sockets.
// In that case no daemon on this machine can be reached over TCP.
func (o *Outlet) Check(log *slog.Logger) {
	err := o.do(func() error {
		_, err := sockdiag.Listener(netip.AddrPortFrom(netip.IPv6Loopback(), 1))
		return err
	})
	if err != nil && !errors.Is(err, sockdiag.ErrUnknown) {
		log.Warn("daemons can't be asked over TCP: the kernel does not tell who serves a port of this machine", "error", err,
			"hint", "allow AF_NETLINK, in RestrictAddressFamilies= of the unit")
	}
}

// Stop ends the thread.
func (o *Outlet) Stop() {
	if o != nil {
		o.thread.Stop()
	}
}
