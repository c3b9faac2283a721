package nss

import (
	"net/netip"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Host returns the addresses of a name. For a literal address it returns only
// that address. Other names are looked up in /etc/hosts and then with getent
// ahosts. So DNS answers, which come from the network, are parsed by an
// unprivileged process and never by the caller.
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
		return nil, notFound("ahosts", name)
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
