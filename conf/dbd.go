package conf

var dbdGrammar = grammar[Dbd]{
	keys: append([]key[Dbd]{
		{name: "DbdHost", set: func(d *Dbd, v string) error { return setHost(&d.Host, v) }},
		{name: "DbdAddr", set: func(d *Dbd, v string) error { return setHost(&d.Address, v) }},
		{name: "DbdPort", set: func(d *Dbd, v string) error { return setPort(&d.Port, v) }},
		{name: "SchedUser", set: func(d *Dbd, v string) error { return setUser(&d.User, v) }},
		{name: "StorageLoc", set: func(d *Dbd, v string) error { return setPath(&d.StorageLoc, v) }},
		{name: "PrivateData", set: func(d *Dbd, v string) error { return setPrivate(&d.PrivateData, v) }},
		{name: "MessageTimeout", set: func(d *Dbd, v string) error { return setTimeout(&d.MessageTimeout, v, maxMessageTimeout) }},
		{name: "TLSType", set: func(d *Dbd, v string) error { return setTLSType(&d.SecureRPC, v) }},
		{name: "TLSParameters", list: true, set: func(d *Dbd, v string) error { return setTLSParameters(&d.TLS, v) }},
		{name: "DebugFlags", set: func(d *Dbd, v string) error { d.DebugFlags = splitList(v); return nil }},
	}, authKeys(func(d *Dbd) *Auth { return &d.Auth })...),
	ignored: ignoredDbdKeys,
}

func readDbd(path string, open source) (*Dbd, []Warning, error) {
	d := &Dbd{Path: path, Host: "localhost", Port: defaultAccountingPort, MessageTimeout: defaultMessageTimeout}
	r := read(dbdGrammar, d, path, open)
	r.require(path, "StorageLoc")
	r.suspect("this is the configuration of a cluster: name that of scheddbd, usually /etc/sched/scheddbd.conf", "ClusterName", "SchedctldHost")
	d.Files, d.SlurmKeys = r.files, r.slurm
	warnings, err := r.finish(path, d.User)
	if err != nil {
		return nil, warnings, err
	}
	if d.Address == "" {
		d.Address = d.Host
	}
	d.complete(d.SlurmKeys, "", AccountingSocket)
	return d, warnings, nil
}
