package ipc

// ProveMode is the argument that starts the worker's program as a test of the
// sandbox (package proof). The next arguments are the SandboxOptions, one of
// the words below, and the time limit for each case. If the word is ProvePage,
// facts follow (see FactPart and the constants after it). The process reports
// the result in Proven.
const (
	ProveMode   = "prove"
	ProveClosed = "closed" // test whether the sandbox can be entered
	ProveSmoke  = "smoke"  // also test whether the sandbox kills, with one case of each kind
	ProvePage   = "page"   // the same with all cases, and print a page for the administrator on standard output
)

// Proven reports whether a test of the sandbox has passed, or whether the init
// process of a PID namespace is confined. If OK is not set, Failure says what
// is wrong.
type Proven struct {
	Result
	Sandbox Ready
}

func (p *Proven) Walk(w *Walker) { w.Fields(&p.Result, &p.Sandbox) }

// DeathTests is the number of death tests that run concurrently.
const DeathTests = 8

// Facts for the page that --check-confinement prints. Each fact is passed as
// one argument, NAME=VALUE or only NAME.
const (
	FactPart   = "part"   // a part of the confinement: its name, its state (below) and the reason, separated by tabs
	FactRoot   = "root"   // the gateway was started as root
	FactName   = "name"   // the serving user
	FactUID    = "uid"    // … its uid
	FactUnfit  = "unfit"  // why the serving user is accepted only with disable_user_check
	FactTasks  = "tasks"  // the process limit of a worker's user
	FactKeeper = "keeper" // a keeper was started; the value is its uid
	FactFailed = "failed" // a worker or the keeper could not be started
)

// Part is a part of the confinement that a worker inherits.
type Part struct {
	Name   string
	State  string // one of the states below; "": nothing to report
	Reason string // why the part is not on; if the part is on, its name in the log
}

func (p *Part) Walk(w *Walker) { w.Text(maxName, &p.Name, &p.State, &p.Reason) }

// NoUserNamespace is the reason why a process lacks a part that needs a user
// namespace.
const NoUserNamespace = "without a user namespace"

const (
	PartOn          = "on"
	PartOff         = "off"         // switched off
	PartMissing     = "missing"     // missing, although this kind of start should have it
	PartUnpermitted = "unpermitted" // this user lacks the permission for it
	PartOfRoot      = "of root"     // only a start as root has it
)
