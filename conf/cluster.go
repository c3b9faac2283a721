package conf

import (
	"strings"
)

// clusterDraft is a Cluster being read. The keys of the accounting daemon count
// only when the type, which may come after them, says that there is one.
type clusterDraft struct {
	Cluster
	accounted  bool
	accounting Accounting
}

var clusterGrammar = grammar[clusterDraft]{
	keys: append([]key[clusterDraft]{
		{name: "ClusterName", set: func(c *clusterDraft, v string) error { return setName(&c.ClusterName, v) }},
		{name: "SchedctldHost", list: true, set: func(c *clusterDraft, v string) error { return addHost(&c.Controllers, v) }},
		{name: "SchedctldPort", set: func(c *clusterDraft, v string) error { return setPort(&c.ControllerPort, v) }},
		{name: "SchedUser", set: func(c *clusterDraft, v string) error { return setUser(&c.User, v) }},
		{name: "AccountingStorageType", set: setAccounting},
		{name: "AccountingStorageHost", set: func(c *clusterDraft, v string) error { return setHost(&c.accounting.Host, v) }},
		{name: "AccountingStorageBackupHost", set: func(c *clusterDraft, v string) error { return setHost(&c.accounting.BackupHost, v) }},
		{name: "AccountingStoragePort", set: func(c *clusterDraft, v string) error { return setPort(&c.accounting.Port, v) }},
		{name: "AccountingStorageSocket", set: func(c *clusterDraft, v string) error { return setPath(&c.accounting.Socket, v) }},
		{name: "StateSaveLocation", set: func(c *clusterDraft, v string) error { return setPath(&c.StateSaveLocation, v) }},
		{name: "TLSType", set: setTLSType},
		{name: "TLSParameters", set: setTLS},
		{name: "MessageTimeout", set: func(c *clusterDraft, v string) error { return setSeconds(&c.MessageTimeout, v) }},
		{name: "DebugFlags", set: func(c *clusterDraft, v string) error { c.DebugFlags = commas(v); return nil }},
	}, authKeys(func(c *clusterDraft) *Auth { return &c.Auth })...),
	lines: map[string]func(*clusterDraft) *[]Line{
		"nodename":      func(c *clusterDraft) *[]Line { return &c.Nodes },
		"partitionname": func(c *clusterDraft) *[]Line { return &c.Partitions },
		"nodeset":       nil,
		"downnodes":     nil,
		"frontendname":  nil,
	},
	passed: passedCluster,
}

func readCluster(path string, open source) (*Cluster, []Warning, error) {
	draft := &clusterDraft{
		Cluster:    Cluster{Path: path, ControllerPort: DefaultControllerPort, MessageTimeout: defaultMessageTimeout},
		accounting: Accounting{Host: "localhost", Port: DefaultAccountingPort},
	}
	r := read(clusterGrammar, draft, path, open)
	r.require(path, "ClusterName", "SchedctldHost")
	c := &draft.Cluster
	c.Files, c.SlurmKeys = r.files, r.slurm
	warnings, err := r.finish(path, c.User)
	if err != nil {
		return nil, warnings, err
	}
	if draft.accounted {
		c.Accounting = &draft.accounting
	}
	c.complete(c.SlurmKeys, c.StateSaveLocation)
	return c, warnings, nil
}

func setAccounting(c *clusterDraft, v string) error {
	switch plugin(v, "accounting_storage/") {
	case "none":
	case "scheddbd", "slurmdbd":
		c.accounted = true
	default:
		return wants("accounting_storage/scheddbd, accounting_storage/slurmdbd or accounting_storage/none")
	}
	return nil
}

func setTLSType(c *clusterDraft, v string) error {
	if v = plugin(v, "tls/"); v != "none" {
		c.TLSType = v
	}
	return nil
}

func setTLS(c *clusterDraft, v string) error {
	c.TLS = map[string]string{}
	for _, p := range commas(v) {
		name, value, _ := strings.Cut(p, "=")
		if name == "" {
			return wants("name=value pairs, separated by commas")
		}
		c.TLS[fold(name)] = value
	}
	return nil
}
