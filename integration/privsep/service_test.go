package privsep

import (
	"slices"

	"schedrestd/become/nss"
	"schedrestd/gateway/endpoint"
	"schedrestd/ipc"
)

// identityOf returns the service identity for the given values of -u, -g and
// SchedUser=.
func identityOf(user, group, sched string) (s ipc.Service) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	if user != "" {
		u, _, err := nss.ParseUser(user)
		must(err)
		s.HasUser, s.HasGroup, s.Name, s.UID, s.GID, s.Options = true, true, u.String(), u.UID, u.GID, "-u "+user
	}
	if group != "" {
		g, err := nss.ParseGroup(group)
		must(err)
		s.HasGroup, s.GID, s.Options = true, g.GID, s.Options+" -g "+group
	}
	if sched != "" {
		u, _, err := nss.ParseUser(sched)
		must(err)
		s.SchedUser, s.SchedUID = sched, u.UID
		s.SchedGroups, err = nss.Groups(u)
		must(err)
	}
	for _, uid := range []uint32{0, s.SchedUID} {
		names, err := nss.NamesOf(uid)
		must(err)
		s.Privileged = append(s.Privileged, names...)
	}
	slices.Sort(s.Privileged)
	s.Privileged = slices.Compact(s.Privileged)
	return s
}

// listens parses LISTEN arguments and resolves their host names.
func listens(texts ...string) (list []ipc.Listen) {
	for _, text := range texts {
		e, err := endpoint.Parse(text)
		if err != nil {
			panic(err)
		}
		l := ipc.Listen{Text: text, Network: e.Network, TLS: e.TLS, Path: e.Path}
		if e.Network == ipc.TCP {
			if l.Addresses, err = e.Addresses(); err != nil {
				panic(err)
			}
		}
		list = append(list, l)
	}
	return list
}
