package privsep

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
	"schedrestd/socket"
)

// endpoint is one LISTEN argument.
type endpoint struct {
	text    string // as it was given
	network ipc.Network
	tls     bool   // https://
	host    string // TCP: "" is every interface
	port    uint16
	path    string // UNIX socket
}

const listenHint = "an address is [host]:port, https://[host]:port or unix:/path/to/socket; an IPv6 address goes in brackets"

// CheckListen tells what is wrong with LISTEN arguments. It resolves no name and opens nothing: a
// command can refuse its line before it does any work.
func CheckListen(list []string) error {
	for _, text := range list {
		if _, err := parseEndpoint(text); err != nil {
			return err
		}
	}
	return nil
}

// parseEndpoint reads one LISTEN argument.
func parseEndpoint(text string) (endpoint, error) {
	e := endpoint{text: text, network: ipc.TCP}
	bad := func(why string) (endpoint, error) {
		return e, errs.New(errs.Invalid, "can't listen on %q: %s", text, why).WithHint(listenHint)
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		e.network, e.path = ipc.Unix, path
		switch {
		case path == "" || path[0] == '@' || strings.ContainsRune(path, 0):
			// An abstract socket has no owner, no mode and no directory.
			return bad("it is not the path of a file")
		case !filepath.IsAbs(path) || strings.HasSuffix(path, "/"):
			return bad("its path must be absolute and name a file")
		case len(path) > socket.MaxPath:
			return bad("its path is longer than " + strconv.Itoa(socket.MaxPath) + " bytes")
		}
		return e, nil
	}
	rest, tls := strings.CutPrefix(text, "https://")
	if scheme, _, ok := strings.Cut(rest, "://"); ok {
		return bad("it starts with " + strconv.Quote(scheme) + ", and only https:// may stand there")
	}
	if strings.Contains(rest, "/") {
		return bad("there is a path behind the port")
	}
	e.tls = tls
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return bad("there is no port, or too many colons")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return bad("port " + strconv.Quote(port) + " is not a number up to 65535")
	}
	e.host, e.port = host, uint16(n)
	return e, nil
}

// addresses are what to bind for e: the name is looked up now, once, in a process
// without privileges.
func (e endpoint) addresses() ([]netip.AddrPort, error) {
	if e.host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), e.port)}, nil
	}
	found, err := become.Host(e.host)
	if err != nil {
		return nil, &errs.Error{Kind: errs.KindOf(err), Message: fmt.Sprintf("can't listen on %q", e.text), Err: err,
			Hint: "getent ahosts " + guard.Quote(e.host) + "  # a name that this machine knows, or an address"}
	}
	var list []netip.AddrPort
	for _, a := range found {
		list = append(list, netip.AddrPortFrom(a, e.port))
	}
	return list, nil
}

// parseEndpoints reads every LISTEN argument before the first is opened.
func parseEndpoints(c Config) ([]endpoint, error) {
	var list []endpoint
	for _, text := range c.Listen {
		e, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if e.tls {
			if err := c.TLS.check(); err != nil {
				return nil, errs.Wrap(err, errs.Invalid, "can't listen on %s", text)
			}
		}
		list = append(list, e)
	}
	return list, nil
}
