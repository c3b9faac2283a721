package nss

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Host returns the addresses of a name. For a literal address it returns only
// that address. Other names are looked up in /etc/hosts and then with getent
// ahosts, so that DNS answers, which come from the network, are parsed by an
// unprivileged process. Without getent, as in a container, a caller that is not
// root asks the name servers itself.
func Host(name string) ([]netip.Addr, error) { return system.host(name) }

func (n *source) host(name string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	if err := checkName("host", name); err != nil {
		return nil, err
	}
	var found []netip.Addr
	add := func(s string) {
		if a, err := netip.ParseAddr(s); err == nil && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	err := n.eachHost(name, func(f []string) { add(f[0]) })
	if err != nil || len(found) > 0 {
		return found, err
	}
	out, err := n.query("ahosts", name) // not cached: a host may move at any time
	if errs.KindOf(err) == errs.Unsupported {
		return n.askDNS(name)
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			add(f[0])
		}
	}
	if err == nil && len(found) == 0 {
		err = notFound("ahosts", name)
	}
	return found, err
}

// askDNS asks the name servers in /etc/resolv.conf, whose answers root does not
// parse.
func (n *source) askDNS(name string) ([]netip.Addr, error) {
	if os.Geteuid() == 0 {
		return nil, notFound("ahosts", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	found, err := n.dns.LookupNetIP(ctx, "ip", name)
	if failure, ok := errors.AsType[*net.DNSError](err); ok && failure.IsNotFound {
		return nil, notFound("ahosts", name)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "look up host %s", name)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, nil
}

// Aliases returns the names that /etc/hosts lists together with a host's name,
// which is one of them.
func Aliases(name string) []string { return system.aliases(name) }

func (n *source) aliases(name string) (list []string) {
	_ = n.eachHost(name, func(f []string) { list = append(list, f[1:]...) }) // without the file, there are none
	return list
}

// eachHost calls do with the fields of each line of /etc/hosts that contains the
// name: the address, then the names.
func (n *source) eachHost(name string, do func(fields []string)) error {
	return n.eachLine("hosts", func(line string) bool {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 && slices.ContainsFunc(f[1:], func(s string) bool { return strings.EqualFold(s, name) }) {
			do(f)
		}
		return false
	})
}
