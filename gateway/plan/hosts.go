package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc/work"
)

// setHosts parses the host names under which browsers and other clients of a
// UNIX socket may reach the gateway, for example through a proxy.
func setHosts(o *options, v string) error {
	bad := func(format string, args ...any) error {
		return errs.New(errs.Invalid, "environment: SCHEDRESTD_HOSTS=%s: %s", v, fmt.Sprintf(format, args...)).
			WithHint("list host names without a scheme or a port, such as portal.example.org,login1")
	}
	o.hosts = splitList(strings.ToLower(v))
	if n := len(o.hosts); n == 0 || n > work.MaxHosts {
		return bad("not 1 to %d names", work.MaxHosts)
	}
	for _, name := range o.hosts {
		if len(name) > 253 || !isOriginHost(name) {
			return bad("%q is not a host name", name)
		}
	}
	return nil
}

// fixedHosts returns the configured host names, and those of this machine: its
// own, with and without the domain, and other names for it in /etc/hosts.
func (o *options) fixedHosts() []string {
	names := slices.Clone(o.hosts)
	own, err := os.Hostname()
	if err != nil || own == "" {
		return names
	}
	short, _, _ := strings.Cut(own, ".")
	for _, name := range append([]string{own, short}, nss.Aliases(own)...) {
		if name = strings.ToLower(name); !slices.Contains(names, name) && isOriginHost(name) && len(names) < 2*work.MaxHosts {
			names = append(names, name)
		}
	}
	return names
}
