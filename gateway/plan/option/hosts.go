package option

import (
	"strings"

	"schedrestd/ipc/work"
)

// setHosts parses the host names under which browsers and other clients of a
// UNIX socket may reach the gateway, for example through a proxy.
func (o *Options) setHosts(name, v string) error {
	bad := func(format string, args ...any) error {
		return invalid(name, v, ": "+format, args...).
			WithHint("list host names without a scheme or a port, such as portal.example.org,login1")
	}
	o.Setup.Hosts = splitList(strings.ToLower(v))
	if n := len(o.Setup.Hosts); n == 0 || n > work.MaxHosts {
		return bad("not 1 to %d names", work.MaxHosts)
	}
	for _, host := range o.Setup.Hosts {
		if len(host) > 253 || !IsHost(host) {
			return bad("%q is not a host name", host)
		}
	}
	return nil
}
