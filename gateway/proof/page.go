package proof

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/confinement"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security"
	"schedrestd/security/sandbox"
)

// page is the page that --check-confinement prints.
type page struct {
	out      io.Writer
	options  ipc.SandboxOptions
	facts    map[string]string // facts from the parent, by name; see ipc.Fact…
	parts    []ipc.Part
	missing  []string // parts that a worker would have to inherit, but does not, with the reasons
	problems []string // protections that are missing or ineffective
}

// newPage returns a page. The arguments options and enforced describe the
// tested sandbox, and facts come from the program's arguments.
func newPage(out io.Writer, options ipc.SandboxOptions, enforced sandbox.Layers, facts []string) *page {
	p := &page{out: out, options: options, facts: map[string]string{}}
	for _, f := range facts {
		key, value, _ := strings.Cut(f, "=")
		if key == ipc.FactPart {
			fields := strings.SplitN(value+"\t\t", "\t", 4)
			if fields[1] != "" {
				p.parts = append(p.parts, ipc.Part{Name: fields[0], State: fields[1], Reason: fields[2]})
				if fields[1] != ipc.PartOn {
					p.missing = append(p.missing, fields[0]+" ("+fields[2]+")")
				}
			}
			continue
		}
		p.facts[key] = value
	}
	p.parts = confinement.AllParts(p.parts, options, enforced)
	return p
}

func (p *page) has(fact string) bool { _, ok := p.facts[fact]; return ok }

// partsOn reports whether all of the named parts are on.
func (p *page) partsOn(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(p.parts, func(part ipc.Part) bool { return part.Name == name && part.State == ipc.PartOn })
	})
}

// anyPart reports whether any part has the given state.
func (p *page) anyPart(state string) bool {
	return slices.ContainsFunc(p.parts, func(part ipc.Part) bool { return part.State == state })
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// writeList writes a heading and lines.
func (p *page) writeList(heading string, lines []string) {
	p.printf("\n%s\n", heading)
	for _, l := range lines {
		p.printf("  %s\n", l)
	}
}

// write writes the page. It calls run to start the death tests in cases. The
// function run returns the cases whose processes were not killed.
func (p *page) write(cases []string, run func(cases []string) ([]string, error)) error {
	p.writeTable()
	if p.has(ipc.FactFailed) {
		return nil // the parent prints the reason
	}
	p.printf("\nA worker was started. Its ids, groups, thread capabilities, namespaces, limits and descriptors in /proc are as expected.\n")
	if p.has(ipc.FactKeeper) {
		p.printf("A keeper was started as uid %s. Its attributes in /proc are as expected. It has closed its sandbox and loaded the keys.\n", p.facts[ipc.FactKeeper])
	}
	probes := sandbox.Probes(sandbox.Options{Unix: p.options&ipc.SandboxUnix != 0})
	p.writeList(fmt.Sprintf("%d forbidden operations were tried and refused:", len(probes)), probes)
	if err := p.runDeathTests(cases, run); err != nil {
		return err
	}
	p.writeList("Left to an attacker who captures a worker:", p.escapes())
	return p.writeVerdict()
}

// writeTable writes the table of the parts of the confinement. If a part is off
// that a gateway started in this way could have, writeTable adds the part to
// p.problems.
func (p *page) writeTable() {
	p.printf("%-34s %-4s %s\n", "PART", "IS", "WHY")
	row := func(name, is, why string) {
		p.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-34s %-4s %s", name, is, why), " "))
	}
	const ownIDs = "the worker's own uid and gid"
	const noIDs = " (4294967295:4294967295)" // with become_user: those of each client
	switch unfit := p.facts[ipc.FactUnfit]; {
	case unfit != "":
		row(ownIDs, "off", "disable_user_check: "+unfit)
		p.problems = append(p.problems, ownIDs+" are off: "+unfit+" (disable_user_check)")
	case p.has(ipc.FactRoot):
		row(ownIDs, "on", strings.TrimSuffix(p.facts[ipc.FactName], noIDs))
	}
	for _, part := range p.parts {
		switch part.State {
		case ipc.PartOn:
			row(part.Name, "on", part.Reason)
		case ipc.PartUnpermitted, ipc.PartOfRoot:
			row(part.Name, "off", part.Reason+": requires a start as root")
		case ipc.PartOff:
			row(part.Name, "off", "switched off: "+part.Reason)
			p.problems = append(p.problems, part.Name+" is off: "+part.Reason)
		case ipc.PartMissing:
			row(part.Name, "off", part.Reason)
			p.problems = append(p.problems, part.Name+" is off: "+part.Reason)
		}
	}
}

// runDeathTests runs the death tests in cases and lists the processes that were
// not killed.
func (p *page) runDeathTests(cases []string, run func([]string) ([]string, error)) error {
	if p.options&ipc.SandboxAudit != 0 {
		p.printf("\n%d death tests were not run: with audit_confinement nothing is killed.\n", len(cases))
		return nil
	}
	failures, err := run(cases)
	if err != nil {
		return err
	}
	p.printf("\n%d death tests were run, each in its own process: %d were killed by SIGSYS.\n", len(cases), len(cases)-len(failures))
	if len(failures) > 0 {
		p.writeList("These were not killed:", failures)
		p.problems = append(p.problems, fmt.Sprintf("%d death tests were not killed", len(failures)))
	}
	return nil
}

// These parts determine which escapes are listed.
const (
	ownRoot      = "root of their own"
	pidNamespace = "PID namespace"
)

// escapesByPart maps each part to an escape. If the part is missing, this
// escape is open to an attacker who controls a worker.
var escapesByPart = map[string]string{
	"network namespace":     "the machine's network, through a hole in the filter: there is no network namespace",
	pidNamespace:            "signals to its user's other processes, through a hole in the filter (and in Landlock where that denies signals): there is no PID namespace",
	confinement.CallFilter:  "every system call that the filter should kill for (audit_confinement)",
	confinement.LandlockTCP: "any TCP address that the dispatcher can reach, by reconnecting a connection that it was given: this kernel's Landlock does not restrict TCP (Linux 6.7)",
}

// escapes returns the escapes that are still open to an attacker who controls a
// worker.
func (p *page) escapes() []string {
	list := []string{
		"what the worker holds: its clients' connections, the tokens in their requests, connections to the daemons",
		"scopes and the rules for tokens, which the worker itself checks: it can use the tokens that it sees for all that the daemons permit their users",
		"bugs in the kernel, in a system call that the filter allows",
		"attacks on the dispatcher and the resolver, which have the machine's file system and network, through fixed formats",
	}
	add := func(applies bool, format string, args ...any) {
		if applies {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(p.has(query.FactDial),
		"connections to the configured daemons, and to no others: %d at once, then %d per second; its %s descriptors limit how many are open, and slurmctld has fewer threads than that",
		int(limit.WorkerDials.Burst), int(limit.WorkerDials.PerSecond), p.facts[query.FactDial])
	add(p.has(query.FactLocal), "everything that its user may ask of the daemons")
	add(p.has(query.FactTLS), "signatures for TLS handshakes: while captured it can impersonate the gateway to clients whose traffic it can intercept")
	add(p.has(query.FactTokens), "checks of token signatures; it cannot sign a token")
	sockets := p.options&ipc.SandboxUnix != 0
	add(sockets && p.has(query.FactMunge), "credentials of MUNGE or auth/slurm for its user, for every host with the same key")
	isolated := p.partsOn(ownRoot, pidNamespace) // a process that sees the machine's /proc can leave any root directory
	add(sockets && !isolated,
		"every UNIX socket that its user may connect to: D-Bus, container engines, the session's agents")
	suffix := ""
	if p.partsOn(confinement.Landlock) {
		suffix = " and in Landlock"
	}
	add(!isolated, "the machine's files, through a hole in the filter%s: it does not have its own root and /proc", suffix)
	for _, part := range p.parts {
		add(escapesByPart[part.Name] != "" && part.State != ipc.PartOn, "%s", escapesByPart[part.Name])
	}
	add(sockets, "any address, by reconnecting a multipath TCP connection, where a socket unit has SocketProtocol=mptcp; no version of Landlock restricts that")
	becomeUser, isRoot := p.has(query.FactBecome), p.has(ipc.FactRoot)
	add(!becomeUser, "processes of uid %s outside the sandbox, which can stop, limit and kill it: give the gateway its own user", p.facts[ipc.FactUID])
	add(true, "memory and CPU time, as much as the service may use (MemoryMax= and CPUQuota= in its unit); the gateway sets no limit")
	add(isRoot && !(p.partsOn(pidNamespace) && security.KernelSince(6, 14)),
		"%s threads per user who has workers: set TasksMax= of the service higher, or no worker starts while one user has them all", p.facts[ipc.FactTasks])
	add(true, "timing side channels: workers, keeper and all other processes share processors and caches")
	add(!isRoot, "processes of the user who started the gateway, outside the sandbox: they can read every file that the gateway reads, including its keys")
	add(becomeUser, "signals: users can stop, limit and kill their own worker, and no other")
	unfit := p.facts[ipc.FactUnfit]
	add(unfit != "", "everything that root or SchedUser may do, as far as the sandbox allows it (disable_user_check): the gateway %s", unfit)
	return list
}

// writeVerdict writes the end of the page: whether all parts are on, and how to
// enable missing parts. writeVerdict returns an error if a part is
// off that a gateway started in this way could have.
func (p *page) writeVerdict() (err error) {
	kind := "without root"
	if p.has(ipc.FactRoot) {
		kind = "as root"
	}
	switch {
	case p.has(query.FactRequired) && len(p.missing) > 0:
		p.printf("\nSome confinement is off and require_confinement is set: such a start fails.\n")
		// the parent returns the same error when it starts to serve
		err = errs.New(errs.Unsupported, "require_confinement: parts of the confinement are not available: %s", strings.Join(p.missing, ", ")).
			WithHint("schedrestd --check-confinement shows what each part needs; without require_confinement the other parts are used")
	case len(p.problems) > 0:
		p.printf("\nSome confinement that this start could have is off.\n")
		return errs.New(errs.Denied, "confinement: %s", strings.Join(p.problems, "; ")).WithHint("%s", p.hint())
	case p.anyPart(ipc.PartUnpermitted):
		p.printf("\nAll confinement that a start %s can have here is on; this machine permits no more.\n", kind)
	default:
		p.printf("\nAll confinement that a start %s can have is on.\n", kind)
	}
	if p.anyPart(ipc.PartUnpermitted) || p.anyPart(ipc.PartOfRoot) || p.anyPart(ipc.PartMissing) {
		if r := p.remedy(); r != "" {
			p.printf("For the rest: %s.\n", r)
		}
	}
	return err
}

// hint returns the remedies for missing parts and for parts that are switched
// off.
func (p *page) hint() string {
	var list []string
	if p.anyPart(ipc.PartOff) || p.facts[ipc.FactUnfit] != "" {
		list = append(list, "SCHEDRESTD_SECURITY switches parts off")
	}
	if r := p.remedy(); p.anyPart(ipc.PartMissing) && r != "" {
		list = append(list, r)
	}
	if len(list) == 0 {
		return "see the table above for the reasons"
	}
	return strings.Join(list, "; ")
}

// remedy returns advice on how to start the gateway so that it has the missing
// parts. It returns "" if this kernel can't provide them.
func (p *page) remedy() string {
	noNamespaces, hasGroups, reason := false, false, ""
	for _, part := range p.parts {
		if part.State == ipc.PartOn || part.State == ipc.PartOff {
			continue
		}
		switch {
		case part.State == ipc.PartOfRoot:
			hasGroups = true
		case !strings.HasPrefix(part.Name, confinement.Landlock) && part.Name != confinement.CallFilter:
			noNamespaces = true
		}
		if part.Name == "user namespace" {
			reason = part.Reason
		}
	}
	if !noNamespaces && !hasGroups {
		return ""
	}
	if p.has(ipc.FactRoot) {
		return "give root CAP_SYS_ADMIN and CAP_SETPCAP at the start, which the gateway then drops (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"
	}
	var list []string
	if noNamespaces {
		list = append(list, namespaceRemedy(reason))
	}
	if hasGroups {
		list = append(list, "start without supplementary groups")
	}
	return "start as root with -u USER; or " + strings.Join(list, ", and ")
}

// namespaceRemedy returns advice on how to let unprivileged users create user
// namespaces and mount in them. If no user namespace could be created, reason
// is the kernel's error. Otherwise reason is "".
func namespaceRemedy(reason string) string {
	is := func(list ...unix.Errno) bool {
		return slices.ContainsFunc(list, func(e unix.Errno) bool { return e.Error() == reason })
	}
	switch {
	case is(unix.ENOSPC, unix.EUSERS):
		return "raise user.max_user_namespaces, or the other limit that is exhausted (listed by sysctl user)"
	case is(unix.EACCES):
		return "let the security module allow this user to create user namespaces (kernel.apparmor_restrict_unprivileged_userns, or a profile for schedrestd; SELinux: user_namespace create)"
	case is(unix.EROFS):
		return "mount /proc read-write (the ids of a user namespace are written there)"
	case is(unix.EPERM):
		return "allow unprivileged users to create user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, RestrictNamespaces= in the unit, " +
			"--security-opt seccomp= in a container)"
	case is(unix.EINVAL, unix.ENOSYS):
		return "use a kernel with user namespaces (CONFIG_USER_NS)"
	}
	return "allow unprivileged users to mount in their user namespaces (kernel.apparmor_restrict_unprivileged_userns, the service's or the container's security options)"
}
