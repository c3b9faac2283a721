package proof

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
	"schedrestd/security/seal"
)

// page is what --check-confinement prints.
type page struct {
	out   io.Writer
	how   ipc.Seal
	facts map[string]string // what the parent knows, by name; see ipc.Fact…
	parts []part
	wrong []string // what is missing, or does not hold
}

// part is one part of the confinement, as the parent found it.
type part struct{ Name, Is, Why string }

// newPage takes the facts that came as arguments.
func newPage(out io.Writer, how ipc.Seal, facts []string) *page {
	p := &page{out: out, how: how, facts: map[string]string{}}
	for _, f := range facts {
		key, value, _ := strings.Cut(f, "=")
		if key == ipc.FactPart {
			fields := strings.SplitN(value+"\t\t", "\t", 4)
			p.parts = append(p.parts, part{fields[0], fields[1], fields[2]})
			continue
		}
		p.facts[key] = value
	}
	return p
}

func (p *page) has(fact string) bool { _, ok := p.facts[fact]; return ok }

// on reports whether all of these parts are on.
func (p *page) on(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(p.parts, func(one part) bool { return one.Name == name && one.Is == ipc.PartOn })
	})
}

// is reports whether a part stands so.
func (p *page) is(standing string) bool {
	return slices.ContainsFunc(p.parts, func(one part) bool { return one.Is == standing })
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// list writes a heading and lines.
func (p *page) list(heading string, lines []string) {
	p.say("\n%s\n", heading)
	for _, l := range lines {
		p.say("  %s\n", l)
	}
}

// write writes the page. run has processes do what kills, and returns those that it
// did not kill.
func (p *page) write(run func(cases []string) ([]string, error)) error {
	p.table()
	if p.has(ipc.FactFailed) {
		return nil // the parent says why
	}
	p.say("\nA worker was started, and is in /proc as it should be: ids, groups, capabilities of each thread, namespaces, limits, descriptors.\n")
	if p.has(ipc.FactKeeper) {
		p.say("A keeper was started as uid %s, is in /proc as it should be, has closed its own cage, and has the keys.\n", p.facts[ipc.FactKeeper])
	}
	probes := seal.Probes(seal.Options{Unix: p.how&ipc.SealUnix != 0})
	p.list(fmt.Sprintf("%d things that are answered no were tried, and were:", len(probes)), probes)
	if err := p.die(run); err != nil {
		return err
	}
	p.list("What remains to who captures a worker:", p.escapes())
	return p.verdict()
}

// table writes the table of the parts.
func (p *page) table() {
	p.say("%-34s %-4s %s\n", "PART", "IS", "WHY")
	row := func(name, is, why string) {
		p.say("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %-4s %s", name, is, why), " "))
	}
	const own = "uid and gid of the worker's own"
	switch unfit := p.facts[ipc.FactUnfit]; {
	case unfit != "":
		row(own, "off", "disable_user_check: "+unfit)
		p.wrong = append(p.wrong, own+" are off: "+unfit+" (disable_user_check)")
	case p.has(ipc.FactRoot):
		row(own, "on", p.facts[ipc.FactName])
	}
	for _, one := range p.parts {
		switch one.Is {
		case ipc.PartOn:
			row(one.Name, "on", one.Why)
		case ipc.PartUnpermitted, ipc.PartOfRoot:
			row(one.Name, "off", one.Why+": takes a start as root")
		case ipc.PartOff:
			row(one.Name, "off", "switched off: "+one.Why)
			p.wrong = append(p.wrong, one.Name+" is off: "+one.Why)
		case ipc.PartMissing:
			row(one.Name, "off", one.Why)
			p.wrong = append(p.wrong, one.Name+" is off: "+one.Why)
		}
	}
}

// die has a process do each case, and writes which were not killed.
func (p *page) die(run func([]string) ([]string, error)) error {
	cases := seal.Acts()
	if p.how&ipc.SealAudit != 0 {
		p.say("\n%d things that should kill were not tried: they kill nobody (audit_confinement).\n", len(cases))
		return nil
	}
	wrong, err := run(cases)
	if err != nil {
		return err
	}
	p.say("\n%d things that kill were done, each by a process of its own: %d died of SIGSYS.\n", len(cases), len(cases)-len(wrong))
	if len(wrong) > 0 {
		p.list("These did not:", wrong)
		p.wrong = append(p.wrong, fmt.Sprintf("%d processes did not die of what they did", len(wrong)))
	}
	return nil
}

// The parts that the list of escapes asks for.
const (
	ownRoot      = "root of their own"
	pidNamespace = "PID namespace"
	landlock     = "Landlock"
)

// ofParts is what is left to an attacker who captured a worker while a part is not on.
var ofParts = map[string]string{
	"network namespace":  "one that found a hole in the filter would be in the machine's network: there is no network namespace",
	pidNamespace:         "one that found a hole in the filter, and in Landlock where that denies signals, could signal its user's other processes: there is no PID namespace",
	"system call filter": "all that the filter should kill for (audit_confinement)",
	"Landlock for TCP":   "a TCP connection that it was given can be undone and made anew to any address that the parent reaches: this kernel's Landlock knows no TCP (Linux 6.7)",
}

// escapes returns what this sandbox leaves to an attacker who captured a worker.
func (p *page) escapes() []string {
	list := []string{
		"what it holds: its clients' connections, the tokens in their requests, connections to the daemons",
		"the kernel: a flaw in a system call that serves requests is a way out",
	}
	add := func(so bool, format string, args ...any) {
		if so {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	dial := strings.Fields(p.facts[ipc.FactDial] + " - - -")
	add(p.has(ipc.FactDial),
		"connections to the configured daemons, and no others, are opened for it: %s in one go and then %s a second, and it has as many open at one time as descriptors, %s: more than slurmctld has threads",
		dial[0], dial[1], dial[2])
	add(p.has(ipc.FactLocal), "whatever its user may ask of the daemons")
	add(p.has(ipc.FactTLS), "handshakes are signed for it while it is there: it can stand in for the gateway where it gets at the traffic")
	add(p.has(ipc.FactTokens), "it is told whether a token's signature is good, and makes none")
	sockets := p.how&ipc.SealUnix != 0
	add(sockets && p.has(ipc.FactMunge), "munged vouches for its user, towards everybody who believes this munged")
	alone := p.on(ownRoot, pidNamespace) // a /proc of the machine's leads out of any root
	add(sockets && !alone,
		"it can connect to each UNIX socket that its user may: D-Bus, container engines, the session's agents")
	and := ""
	if p.on(landlock) {
		and = " and in Landlock"
	}
	add(!alone, "one that found a hole in the filter%s would see the machine's files: it has no root of its own, with a /proc of its own", and)
	for _, one := range p.parts {
		add(ofParts[one.Name] != "" && one.Is != ipc.PartOn, "%s", ofParts[one.Name])
	}
	add(sockets, "where a socket unit has SocketProtocol=mptcp: connections by multipath TCP can be undone and made anew, too; no Landlock knows it")
	becomes, isRoot := p.has(ipc.FactBecome), p.has(ipc.FactRoot)
	add(!becomes, "processes of uid %s outside of the cage can stop, limit and kill it: give the gateway a user of its own", p.facts[ipc.FactUID])
	add(true, "memory and processor time: as much as the service may have (MemoryMax= and CPUQuota= in its unit); there is no bound of ours")
	add(isRoot && !(p.on(pidNamespace) && security.KernelSince(6, 14)),
		"threads: %s for each user who has workers. TasksMax= of the service should be more, or no worker starts while one has them", p.facts[ipc.FactTasks])
	add(true, "timing: workers, keeper and everybody else share processors and caches")
	add(!isRoot, "it is the starter, and so is the keeper: outside of the cage whatever is his can read the files that the gateway reads, keys among them")
	add(becomes, "a user can stop, limit and kill the worker that is his, and nobody else's")
	unfit := p.facts[ipc.FactUnfit]
	add(unfit != "", "all that root or SchedUser may, as far as the cage lets it (disable_user_check): the gateway %s", unfit)
	return list
}

// verdict ends the page.
func (p *page) verdict() error {
	kind := "without root"
	if p.has(ipc.FactRoot) {
		kind = "as root"
	}
	switch {
	case p.has(ipc.FactRefused):
		p.say("\nNot all is on, and all is required (require_confinement): such a start fails.\n")
	case len(p.wrong) > 0:
		p.say("\nNot all is on that this start could have.\n")
		return failure{fmt.Errorf("confinement: %s", strings.Join(p.wrong, "; ")), p.hint()}
	case p.is(ipc.PartUnpermitted):
		p.say("\nAll is on that a start %s can have where no more is permitted to it.\n", kind)
	default:
		p.say("\nAll is on that a start %s can have.\n", kind)
	}
	if p.is(ipc.PartUnpermitted) || p.is(ipc.PartOfRoot) || p.is(ipc.PartMissing) {
		if r := p.remedy(); r != "" {
			p.say("For the rest: %s.\n", r)
		}
	}
	return nil
}

// hint returns what helps where something is wrong.
func (p *page) hint() string {
	var list []string
	if p.is(ipc.PartOff) || p.facts[ipc.FactUnfit] != "" {
		list = append(list, "what is switched off is so by SCHEDRESTD_SECURITY")
	}
	if r := p.remedy(); p.is(ipc.PartMissing) && r != "" {
		list = append(list, r)
	}
	if len(list) == 0 {
		return "the table above has the reasons"
	}
	return strings.Join(list, "; ")
}

// remedy returns what a start needs that has what this one could not have; "" where
// another start on this kernel would have no more.
func (p *page) remedy() string {
	closed, inGroups, why := false, false, ""
	for _, one := range p.parts {
		if one.Is == ipc.PartOn || one.Is == ipc.PartOff {
			continue
		}
		switch {
		case one.Is == ipc.PartOfRoot:
			inGroups = true
		case !strings.HasPrefix(one.Name, landlock) && one.Name != "system call filter":
			closed = true
		}
		if one.Name == "user namespace" {
			why = one.Why
		}
	}
	if !closed && !inGroups {
		return ""
	}
	if p.has(ipc.FactRoot) {
		return "root needs CAP_SYS_ADMIN and CAP_SETPCAP at the start, which it gives up (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"
	}
	var list []string
	if closed {
		list = append(list, permits(why))
	}
	if inGroups {
		list = append(list, "start in no supplementary group")
	}
	return "start as root with -u USER; or " + strings.Join(list, ", and ")
}

// permits returns what lets ordinary users have user namespaces and mounts in them,
// by what the kernel says to a process that may not; "": it has the namespace.
func permits(why string) string {
	is := func(list ...unix.Errno) bool {
		return slices.ContainsFunc(list, func(e unix.Errno) bool { return e.Error() == why })
	}
	switch {
	case is(unix.ENOSPC, unix.EUSERS):
		return "raise user.max_user_namespaces, or the one that is used up of the limits beside it (sysctl user)"
	case is(unix.EACCES):
		return "have the security module let this user make user namespaces (kernel.apparmor_restrict_unprivileged_userns, or a profile for schedrestd; SELinux: user_namespace create)"
	case is(unix.EROFS):
		return "mount /proc so that it can be written (the ids of a user namespace are written there)"
	case is(unix.EPERM):
		return "let ordinary users make user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, RestrictNamespaces= in the unit, " +
			"--security-opt seccomp= in a container)"
	case is(unix.EINVAL, unix.ENOSYS):
		return "take a kernel with user namespaces (CONFIG_USER_NS)"
	}
	return "let ordinary users mount in the user namespaces that they make (kernel.apparmor_restrict_unprivileged_userns, the service's or the container's security options)"
}
