package plan

import (
	"net/netip"
	"path"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// checkDistinct refuses two settings that name the same port or socket. The
// kernel would refuse the second one, and its error does not say which program
// listens there. If the gateway listens in another network namespace, ports of
// the metrics, which are not in that namespace, are different ports.
func checkDistinct(listen, metrics []ipc.Listen, otherNetns bool) error {
	for i, a := range listen {
		for _, b := range listen[i+1:] {
			if sameEndpoint(a, b) {
				return errs.New(errs.Invalid, "listen on %s: %s names the same %s", b.Text, a.Text, kindOf(b)).
					WithHint("leave out one of the two, or change it")
			}
		}
	}
	for _, m := range metrics {
		for _, l := range listen {
			if sameEndpoint(l, m) && (m.Network == ipc.Unix || !otherNetns) {
				return errs.New(errs.Invalid, "metrics: --metrics %s and the address for clients, %s, name the same %s", m.Text, l.Text, kindOf(m)).
					WithHint("metrics have an address of their own: use another %s for one of the two, such as --metrics=127.0.0.1:9820", kindOf(m))
			}
		}
	}
	return nil
}

func kindOf(l ipc.Listen) string {
	if l.Network == ipc.Unix {
		return "socket"
	}
	return "port"
}

// sameEndpoint reports whether the kernel would refuse to listen on both.
func sameEndpoint(a, b ipc.Listen) bool {
	if a.Network != b.Network {
		return false
	}
	if a.Network == ipc.Unix {
		return path.Clean(a.Path) == path.Clean(b.Path)
	}
	for _, x := range a.Addresses {
		for _, y := range b.Addresses {
			if x.Port() == y.Port() && x.Port() != 0 && (covers(x.Addr().Unmap(), y.Addr().Unmap()) || covers(y.Addr().Unmap(), x.Addr().Unmap())) {
				return true
			}
		}
	}
	return false
}

// covers reports whether a socket that is bound to a also gets the connections
// to b. The unspecified IPv6 address covers those to IPv4 addresses, too.
func covers(a, b netip.Addr) bool {
	return a == b || a == netip.IPv6Unspecified() || a == netip.IPv4Unspecified() && b.Is4()
}
