package plan

import (
	"os"
	"slices"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/gateway/plan/option"
	"schedrestd/ipc/work"
)

// fixedHosts returns the configured host names, and those of this machine: its
// own, with and without the domain, and other names for it in /etc/hosts.
func (o *options) fixedHosts() []string {
	names := slices.Clone(o.Setup.Hosts)
	own, err := os.Hostname()
	if err != nil || own == "" {
		return names
	}
	short, _, _ := strings.Cut(own, ".")
	for _, name := range append([]string{own, short}, nss.Aliases(own)...) {
		if name = strings.ToLower(name); !slices.Contains(names, name) && option.IsHost(name) && len(names) < 2*work.MaxHosts {
			names = append(names, name)
		}
	}
	return names
}
