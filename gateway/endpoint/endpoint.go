// Package endpoint parses two kinds of names that an administrator writes: the
// addresses on which the gateway listens, and the names of network namespaces.
// It opens nothing.
package endpoint

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/socket"
	"schedrestd/ipc"
)

// Endpoint is a LISTEN argument.
type Endpoint struct {
	Text    string // as the administrator wrote it
	Network ipc.Network
	TLS     bool   // https://
	Host    string // TCP: name or address; "" means every interface
	Port    uint16
	Path    string // path of the UNIX socket
}

const listenHint = "an address is [host]:port, https://[host]:port or unix:/path/to/socket; an IPv6 address goes in brackets"

// Check returns an error if a LISTEN argument is invalid. It resolves no name
// and opens nothing, so that a command can reject its arguments before it does
// any work.
func Check(list []string) error {
	for _, text := range list {
		if _, err := Parse(text); err != nil {
			return err
		}
	}
	return nil
}

func Parse(text string) (Endpoint, error) {
	e := Endpoint{Text: text, Network: ipc.TCP}
	bad := func(reason string) (Endpoint, error) {
		return e, errs.New(errs.Invalid, "listen on %q: %s", text, reason).WithHint(listenHint)
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		e.Network, e.Path = ipc.Unix, path
		switch {
		case path == "" || path[0] == '@' || strings.ContainsRune(path, 0):
			// An abstract socket is refused, because it has no owner, mode or
			// directory.
			return bad("not a file path")
		case !filepath.IsAbs(path) || strings.HasSuffix(path, "/"):
			return bad("its path must be absolute and name a file")
		case len(path) > socket.MaxPath:
			return bad("its path is longer than " + strconv.Itoa(socket.MaxPath) + " bytes")
		}
		return e, nil
	}
	rest, tls := strings.CutPrefix(text, "https://")
	if scheme, _, ok := strings.Cut(rest, "://"); ok {
		return bad("its scheme is " + strconv.Quote(scheme) + "; only https:// is allowed")
	}
	if strings.Contains(rest, "/") {
		return bad("a path follows the port")
	}
	e.TLS = tls
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		if _, notPort := strconv.ParseUint(rest, 10, 16); notPort == nil {
			scheme := strings.TrimSuffix(text, rest)
			return e, errs.New(errs.Invalid, "listen on %q: a port needs a colon before it", text).
				WithHint("write %s:%s for all addresses of this machine, or %[1]s127.0.0.1:%[2]s for programs on this machine only", scheme, rest)
		}
		return bad("no port, or too many colons")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return bad("port " + strconv.Quote(port) + " is not a number up to 65535")
	}
	e.Host, e.Port = host, uint16(n)
	return e, nil
}

// Addresses returns the addresses to bind for e. It looks up the host name, so
// call it once, in a process without privileges.
func (e Endpoint) Addresses() ([]netip.AddrPort, error) {
	if e.Host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), e.Port)}, nil
	}
	addrs, err := nss.Host(e.Host)
	if err != nil {
		return nil, &errs.Error{Kind: errs.KindOf(err), Message: fmt.Sprintf("listen on %q", e.Text), Err: err,
			Hint: "getent ahosts " + guard.Quote(e.Host) + "  # a name that this machine knows, or an address"}
	}
	var list []netip.AddrPort
	for _, a := range addrs {
		list = append(list, netip.AddrPortFrom(a, e.Port))
	}
	return list, nil
}
