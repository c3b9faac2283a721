package slurm

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// privateData are the lines of slurm.conf and slurmdbd.conf that hide everything
// that Slurm can hide.
var privateData = map[string]string{
	"slurm.conf":    "PrivateData=accounts,events,jobs,nodes,partitions,reservations,usage,users\n",
	"slurmdbd.conf": "PrivateData=accounts,events,jobs,reservations,usage,users\n",
}

// configure appends lines to the cluster's configuration files, and starts the
// daemons that read them again.
func (m *machine) configure(t *testing.T, lines map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		m.appendFile(t, filepath.Join("etc/slurm", name), lines[name])
	}
	for _, name := range []string{"slurmctld", "slurmdbd"} {
		m.signal(t, name, "TERM")
		m.awaitExit(t, name)
	}
	for _, name := range []string{"slurmdbd", "slurmctld"} {
		m.restart(t, name)
	}
	m.awaitNode(t)
}

// addRoles returns tokens of users of each kind, by the user's name. It makes
// alice a coordinator, and games an operator. The user mail has no account. The
// users games and mail are accounts of Debian.
func (m *machine) addRoles(t *testing.T) map[string]string {
	t.Helper()
	for _, change := range []string{
		"add account art description=art organization=art",
		"add account private parent=art description=private organization=art",
		"add user games account=physics adminlevel=operator",
		"add user backup account=private",
		"add coordinator account=art names=alice",
	} {
		m.run(t, "slurm", append([]string{"sacctmgr", "-i", "-Q"}, strings.Fields(change)...)...)
	}
	tokens := map[string]string{}
	for _, user := range []string{"alice", "bob", "games", "mail"} {
		token, err := m.createToken(user)
		must(t, err)
		tokens[user] = token
	}
	return tokens
}
