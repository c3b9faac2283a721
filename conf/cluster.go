package conf

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// A clusterDraft is a Cluster that is being read. It also holds the values of
// keys whose effect depends on a key that may be read later. The keys for the
// accounting daemon have an effect only if AccountingStorageType requires that
// daemon. The old keys for the two controllers, such as ControlMachine, have an
// effect only if SchedctldHost is not set.
type clusterDraft struct {
	Cluster
	hasAccounting   bool
	accounting      Accounting
	primary, backup Host

	propagated, unpropagated resourceLimits
}

var clusterGrammar = grammar[clusterDraft]{
	keys: append([]key[clusterDraft]{
		{name: "ClusterName", set: func(c *clusterDraft, v string) error { return setName(&c.ClusterName, v) }},
		{name: "SchedctldHost", list: true, set: func(c *clusterDraft, v string) error { return addHost(&c.Controllers, v) }},
		{name: "ControlMachine", set: func(c *clusterDraft, v string) error { return setLegacyHost(&c.primary.Name, v) }},
		{name: "ControlAddr", set: func(c *clusterDraft, v string) error { return setHost(&c.primary.Address, v) }},
		{name: "BackupController", set: func(c *clusterDraft, v string) error { return setLegacyHost(&c.backup.Name, v) }},
		{name: "BackupAddr", set: func(c *clusterDraft, v string) error { return setHost(&c.backup.Address, v) }},
		{name: "SchedctldAddr", set: func(c *clusterDraft, v string) error { return setHost(&c.SharedAddress, v) }},
		{name: "SchedctldPort", set: func(c *clusterDraft, v string) error { return setPorts(&c.ControllerPort, &c.MorePorts, v) }},
		{name: "SchedUser", set: func(c *clusterDraft, v string) error { return setUser(&c.User, v) }},
		{name: "AccountingStorageType", set: setAccounting},
		{name: "AccountingStorageHost", set: func(c *clusterDraft, v string) error { return setHost(&c.accounting.Host, v) }},
		{name: "AccountingStorageBackupHost", set: func(c *clusterDraft, v string) error { return setHost(&c.accounting.BackupHost, v) }},
		{name: "AccountingStoragePort", set: func(c *clusterDraft, v string) error { return setPort(&c.accounting.Port, v) }},
		{name: "AccountingStorageSocket", set: func(c *clusterDraft, v string) error { return setPath(&c.accounting.Socket, v) }},
		{name: "AccountingStoragePass", set: setAccountingMunge},
		{name: "StateSaveLocation", set: func(c *clusterDraft, v string) error { return setPath(&c.StateSaveLocation, v) }},
		{name: "PrivateData", set: func(c *clusterDraft, v string) error { return setPrivate(&c.PrivateData, v) }},
		{name: "SchedctldParameters", set: func(c *clusterDraft, v string) error {
			c.Configless = slices.Contains(splitList(fold(v)), "enable_configless")
			return nil // the other parameters are for Slurm's controller
		}},
		{name: "SchedrestdParameters", set: func(c *clusterDraft, v string) error { return setRestdParameters(&c.Restd, v) }},
		{name: "SchedrestdHttpAuthParameters", set: func(*clusterDraft, string) error {
			return warningError("has no effect on this gateway, which verifies tokens with the keys of AuthAltParameters")
		}},
		{name: "SerializerParameters", set: func(c *clusterDraft, v string) error { return setSerializerParameters(&c.Restd, v) }},
		{name: "TLSType", set: func(c *clusterDraft, v string) error { return setTLSType(&c.SecureRPC, v) }},
		{name: "TLSParameters", list: true, set: func(c *clusterDraft, v string) error { return setTLSParameters(&c.TLS, v) }},
		{name: "MessageTimeout", set: func(c *clusterDraft, v string) error { return setTimeout(&c.MessageTimeout, v, maxMessageTimeout) }},
		{name: "TCPTimeout", set: func(c *clusterDraft, v string) error { return setTimeout(&c.ConnectTimeout, v, maxConnectTimeout) }},
		{name: "KillWait", set: func(c *clusterDraft, v string) error { return setTimeout(&c.KillWait, v, maxKillWait) }},
		{name: "DebugFlags", set: func(c *clusterDraft, v string) error { c.DebugFlags = splitList(v); return nil }},
		{name: "PropagateResourceLimits", set: func(c *clusterDraft, v string) error { return setResourceLimits(&c.propagated, v) }},
		{name: "PropagateResourceLimitsExcept", set: func(c *clusterDraft, v string) error { return setResourceLimits(&c.unpropagated, v) }},
	}, authKeys(func(c *clusterDraft) *Auth { return &c.Auth })...),
	lines: map[string]func(*clusterDraft) *[]Line{
		"nodename":      func(c *clusterDraft) *[]Line { return &c.Nodes },
		"partitionname": func(c *clusterDraft) *[]Line { return &c.Partitions },
		"nodeset":       nil,
		"downnodes":     nil,
		"frontendname":  nil,
		"switchname":    nil, // key of topology.conf, which slurm.conf may include
		"blockname":     nil,
		"poweraction":   nil,
	},
	ignored: ignoredClusterKeys,
}

func readCluster(path string, open source) (*Cluster, []Warning, error) {
	draft := &clusterDraft{
		Cluster:    Cluster{Path: path, ControllerPort: DefaultControllerPort, MessageTimeout: defaultMessageTimeout},
		accounting: Accounting{Host: "localhost", Port: defaultAccountingPort},
	}
	r := read(clusterGrammar, draft, path, open)
	draft.addLegacyHosts(r)
	r.require(path, "ClusterName", "SchedctldHost")
	r.suspect("this is the configuration of an accounting daemon: name that of the cluster, usually sched.conf or slurm.conf", "StorageLoc", "DbdHost")
	c := &draft.Cluster
	c.Files, c.SlurmKeys = r.files, r.slurm
	warnings, err := r.finish(path, c.User)
	if err != nil {
		return nil, warnings, err
	}
	c.KeptLimits = keptLimits(draft.propagated, draft.unpropagated)
	if draft.hasAccounting {
		c.Accounting = &draft.accounting
	}
	state := c.StateSaveLocation
	if c.SlurmKeys {
		state = cmp.Or(state, slurmState)
	}
	socket := ControllerSocket
	if len(c.Controllers) == 0 { // /dev/null
		socket = ""
	}
	c.complete(c.SlurmKeys, state, socket)
	return c, warnings, nil
}

// AccountingSocket returns the path of the accounting daemon's UNIX socket, or
// "" if it has none. If the bundled accounting daemon runs on this machine, its
// socket has a default path.
func (c *Cluster) AccountingSocket() string {
	ip, err := netip.ParseAddr(c.Accounting.Host)
	if c.Accounting.Socket == "" && c.AuthType == "auth/cred" && (c.Accounting.Host == "localhost" || err == nil && ip.IsLoopback()) {
		return AccountingSocket
	}
	return c.Accounting.Socket
}

// addLegacyHosts adds the controllers that are named by the old keys
// ControlMachine and BackupController. BackupController is optional. If
// SchedctldHost is set, addLegacyHosts ignores the old keys.
func (c *clusterDraft) addLegacyHosts(r *parser[clusterDraft]) {
	primary, backup, current := r.seen["controlmachine"], r.seen["backupcontroller"], r.seen["schedctldhost"]
	switch {
	case current != "":
		if primary != "" || backup != "" {
			text := "ControlMachine and BackupController are ignored because " + current + " is set"
			r.warnings = append(r.warnings, Warning{c.Path, 0, text})
		}
		return
	case primary == "":
		return
	}
	r.seen["schedctldhost"] = primary // so that require does not report it as missing
	for _, h := range []Host{c.primary, c.backup} {
		if h.Name != "" {
			c.Controllers = append(c.Controllers, Host{h.Name, cmp.Or(h.Address, h.Name)})
		}
	}
}

// setLegacyHost sets the name of a machine. If the value lists several names of
// that machine, the first is used.
func setLegacyHost(to *string, v string) error {
	name, _, _ := strings.Cut(v, ",")
	return setHost(to, name)
}

func setAccounting(c *clusterDraft, v string) error {
	switch pluginName(v, "accounting_storage/") {
	case "none":
	case "scheddbd", "slurmdbd":
		c.hasAccounting = true
	default:
		return toleratedError{wantError("accounting_storage/scheddbd, accounting_storage/slurmdbd or accounting_storage/none"),
			"unsupported type; accounting is not served"}
	}
	return nil
}

// setAccountingMunge sets the socket of a second munged, whose MUNGE key
// differs from that of the cluster's own munged. The credentials of the second
// munged are for an accounting daemon that several clusters share. A value that
// does not contain the path of a socket is a password, and is ignored.
func setAccountingMunge(c *clusterDraft, v string) error {
	for _, p := range splitList(v) {
		if path, ok := socket(p); ok && filepath.IsAbs(path) {
			c.accounting.Munge = filepath.Clean(path)
			return nil
		}
	}
	return nil
}
