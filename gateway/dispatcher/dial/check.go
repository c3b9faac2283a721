package dial

import (
	"errors"
	"log/slog"
	"net/netip"

	"schedrestd/internal/sockdiag"
	"schedrestd/internal/sockdiag/portowner"
)

// Check logs a warning if the kernel can't report the owners of sockets.
// Without this information, workers can't use TCP to reach daemons on this
// machine.
func Check(log *slog.Logger) {
	// Normally no process listens on port 1, so the error is ErrUnknown.
	_, err := portowner.ListenerUID(netip.AddrPortFrom(netip.IPv6Loopback(), 1))
	if err != nil && !errors.Is(err, sockdiag.ErrUnknown) {
		log.Warn("no requests to daemons over TCP: the kernel does not report the owner of a local port", "error", err,
			"hint", "allow AF_NETLINK, in RestrictAddressFamilies= of the unit")
	}
}
