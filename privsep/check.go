package privsep

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// Check starts one worker as Run would, a keeper where Run would start one, and processes that try all that the cage of
// workers forbids, and writes what came of it to out, for an administrator. It opens no listener and serves nobody. The error
// says what is missing of what this kind of start can have, or does not hold; where all is required it is Run's.
func Check(c Config, out io.Writer) error {
	runtime.GOMAXPROCS(1)
	k := &check{out: out, required: c.Switches.RequireConfinement}
	c.Switches.RequireConfinement = false // or a worker would refuse before anything could be told of it
	c.kernelTells = len(c.Listen) == 0    // where nothing is named, anything may come
	if len(c.Listen) == 0 {
		c.Listen = []ipc.Listen{{Text: "127.0.0.1:0", Network: ipc.TCP}} // which is not opened
		if c.Switches.BecomeUser {
			c.Listen = []ipc.Listen{{Text: "unix:/check", Network: ipc.Unix, Path: "/check"}} // nor is this
		}
	}
	if err := c.checkListen(); err != nil {
		return err
	}
	var listeners []*listen.Listener // as they would be
	for _, e := range c.Listen {
		listeners = append(listeners, &listen.Listener{Network: e.Network, Name: e.Text, TLS: e.TLS})
	}
	c, who, program, err := prepare(c)
	if err != nil {
		return err
	}
	defer program.Close()
	c = c.with(listeners, who)
	c.Outlet = "" // nor is a way to a daemon
	makers, err := newMakers(c, who, listeners, nil)
	if err != nil {
		return err
	}
	defer makers.close()
	makers.resolver = nil // it has no cage
	k.config, k.who, k.means = c, who, newMeans(c, makers)
	defer k.end()
	if err := k.begin(c, who, program, makers.keeper.program); err != nil {
		return err
	}
	return k.run()
}

// check is one run of Check.
type check struct {
	means
	config   Config
	who      service
	out      io.Writer
	required bool         // all of the confinement
	layers   spawn.Layers // as a worker closes it
	wrong    []string     // what is missing, or does not hold
}

func (k *check) run() error {
	sealed, probes, acts, err := k.spawner.Recite()
	if err != nil {
		return err
	}
	k.layers = k.spawner.Layers.Closed(k.config.seal(), sealed)
	k.table()
	g, err := k.build(k.config, nil, true)
	if err != nil {
		return errs.Wrap(err, errs.KindOf(err), "start the keeper")
	}
	defer g.release()
	if err := k.try(g, k.who); err != nil {
		return errs.Wrap(err, errs.KindOf(err), "start a worker")
	}
	k.say("\nA worker was started, and is in /proc as it should be: ids, groups, capabilities of each thread, namespaces, limits, descriptors.\n")
	if p := g.keeper; p != nil {
		k.say("A keeper was started as uid %d, is in /proc as it should be, has closed its own cage, and has the keys.\n", p.Who.UID)
	}
	k.list(fmt.Sprintf("%d things that are answered no were tried, and were:", len(probes)), probes)
	if err := k.die(acts); err != nil {
		return err
	}
	k.list("What remains to who captures a worker:", k.escapes())
	return k.verdict()
}

// verdict ends the page.
func (k *check) verdict() error {
	k.spawner.Switches.RequireConfinement = k.required
	if err := k.spawner.CheckRequired(); err != nil {
		k.say("\nNot all is on, and all is required (require_confinement): such a start fails.\n")
		return err
	}
	if len(k.wrong) > 0 {
		k.say("\nNot all is on that this start could have.\n")
		return errs.New(errs.Unsupported, "confinement: %s", strings.Join(k.wrong, "; ")).WithHint("%s", k.hint())
	}
	if k.layers.Any(spawn.IsMissing, func(p spawn.Part) bool { return p.Usual(k.who.root) && spawn.Parts[p].Reach == spawn.WherePermitted }) {
		k.say("\nAll is on that a start %s can have where no more is permitted to it.\n", k.kind())
		return nil
	}
	k.say("\nAll is on that a start %s can have.\n", k.kind())
	return nil
}

// hint is what helps where something is wrong.
func (k *check) hint() string {
	var list []string
	if len(k.layers.List(spawn.IsOff)) > 0 || k.who.unfit != nil {
		list = append(list, "what is switched off is so by SCHEDRESTD_SECURITY")
	}
	if k.layers.Any(spawn.IsMissing, func(p spawn.Part) bool { return !p.Usual(k.who.root) }) {
		list = append(list, cmp.Or(k.layers.Remedy(k.who.root), "the table above has the reasons"))
	}
	return cmp.Or(strings.Join(list, "; "), "the table above has the reasons")
}

// kind is what kind of start this is.
func (k *check) kind() string {
	if k.who.root {
		return "as root"
	}
	return "without root"
}

func (k *check) say(format string, args ...any) { fmt.Fprintf(k.out, format, args...) }

// list writes a heading and lines.
func (k *check) list(heading string, lines []string) {
	k.say("\n%s\n", heading)
	for _, l := range lines {
		k.say("  %s\n", l)
	}
}

// table writes the table of the parts.
func (k *check) table() {
	k.say("%-34s %-4s %s\n", "PART", "IS", "WHY")
	row := func(part, is, why string) {
		k.say("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %-4s %s", part, is, why), " "))
	}
	const own = "uid and gid of the worker's own"
	switch {
	case k.who.unfit != nil:
		row(own, "off", "disable_user_check: "+k.who.unfit.Error())
		k.wrong = append(k.wrong, own+" are off: "+k.who.unfit.Error()+" (disable_user_check)")
	case k.who.root:
		row(own, "on", fmt.Sprintf("%s (%d:%d)", k.who.Name, int32(k.who.UID), int32(k.who.GID)))
	}
	for p, l := range k.layers {
		name := spawn.Parts[p].Name
		switch {
		case l.Is == spawn.IsOn:
			row(name, "on", l.As)
		case l.Is == spawn.IsMissing && spawn.Part(p).Usual(k.who.root):
			row(name, "off", l.Why.Error()+": takes a start as root")
		case k.layers.Lacks(spawn.Part(p)):
			row(name, "off", spawn.Because(l.Is == spawn.IsOff, "switched off: ")+l.Why.Error())
			k.wrong = append(k.wrong, name+" is off: "+l.Why.Error())
		}
	}
}

// die has a process do each of the acts, and writes who did not die.
func (k *check) die(acts []string) error {
	if k.config.Switches.AuditConfinement {
		k.say("\n%d things that should kill were not tried: they kill nobody (audit_confinement).\n", len(acts))
		return nil
	}
	_, wrong, err := k.spawner.Commit(acts)
	if err != nil {
		return err
	}
	k.say("\n%d things that kill were done, each by a process of its own: %d died of SIGSYS.\n", len(acts), len(acts)-len(wrong))
	if len(wrong) > 0 {
		k.list("These did not:", wrong)
		k.wrong = append(k.wrong, fmt.Sprintf("%d processes did not die of what they did", len(wrong)))
	}
	return nil
}

// escapes is what this cage leaves to who captures a worker.
func (k *check) escapes() []string {
	s := k.config.Setup
	list := []string{
		"what it holds: its clients' connections, the tokens in their requests, connections to the daemons",
		"the kernel: a flaw in a system call that serves requests is a way out",
	}
	add := func(so bool, format string, args ...any) {
		if so {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	tcp := func(a ipc.Address) bool { return a.Network == "tcp" }
	add(slices.ContainsFunc(slices.Concat(s.Controllers, s.Accounting, s.Front), tcp),
		"connections to the configured daemons, and no others, are opened for it: %d in one go and then %d a second, and it has as many open at one time as descriptors, %d: more than slurmctld has threads",
		k.config.DialBurst, k.config.DialRate, k.config.files())
	add(s.Local && k.config.kernelTells, "whatever its user may ask of the daemons")
	add(k.config.Secrets.TLS.Key != "", "handshakes are signed for it while it is there: it can stand in for the gateway where it gets at the traffic")
	add(k.config.Secrets.Tokens.Key != "", "it is told whether a token's signature is good, and makes none")
	sockets := s.Seal&ipc.SealUnix != 0
	add(sockets && s.Munge.Socket != "", "munged vouches for its user, towards everybody who believes this munged")
	alone := k.layers.Has(spawn.OwnRoot, spawn.PidNamespace) // a /proc of the machine's leads out of any root
	add(sockets && !alone,
		"it can connect to each UNIX socket that its user may: D-Bus, container engines, the session's agents")
	add(!alone, "one that found a hole in the filter%s would see the machine's files: it has no root of its own, with a /proc of its own",
		spawn.Because(k.layers.Has(spawn.Landlock), " and in Landlock"))
	for p, row := range spawn.Parts {
		add(row.Escape != "" && k.layers.Lacks(spawn.Part(p)), "%s", row.Escape)
	}
	add(sockets, "where a socket unit has SocketProtocol=mptcp: connections by multipath TCP can be undone and made anew, too; no Landlock knows it")
	add(!k.config.Switches.BecomeUser, "processes of uid %d outside of the cage can stop, limit and kill it: give the gateway a user of its own", int32(k.who.UID))
	add(true, "memory and processor time: as much as the service may have (MemoryMax= and CPUQuota= in its unit); there is no bound of ours")
	add(k.who.root && !(k.layers.Has(spawn.PidNamespace) && security.KernelSince(6, 14)),
		"threads: %d for each user who has workers. TasksMax= of the service should be more, or no worker starts while one has them", spawn.MostOfUser)
	add(true, "timing: workers, keeper and everybody else share processors and caches")
	add(!k.who.root, "it is the starter, and so is the keeper: outside of the cage whatever is his can read the files that the gateway reads, keys among them")
	add(k.config.Switches.BecomeUser, "a user can stop, limit and kill the worker that is his, and nobody else's")
	add(k.who.unfit != nil, "all that root or SchedUser may, as far as the cage lets it (disable_user_check): the gateway %v", k.who.unfit)
	return list
}
