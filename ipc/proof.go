package ipc

// ProveMode is the argument that starts the worker's program as a test of the sandbox
// (package proof). It is followed by the Seal of the sandbox, one of the words below,
// the time limit of one case and, for ProvePage, facts. The process sends Proven.
const (
	ProveMode   = "prove"
	ProveClosed = "closed" // test that the sandbox can be entered
	ProveSmoke  = "smoke"  // … and that it kills, with one case of each kind
	ProvePage   = "page"   // … with all cases, and print a page for the administrator on standard output
)

// Proven reports that a test of the sandbox has passed, or that the init process of a
// PID namespace is confined. Otherwise Failure says what is wrong.
type Proven struct {
	OK     bool
	Sealed Ready // how the sandbox is closed
	Failure
}

func (p *Proven) Walk(w *Walker) { w.Fields(&p.OK, &p.Sealed, &p.Failure) }

// DeathTests is the number of cases that run concurrently.
const DeathTests = 8

// A fact for the page is an argument NAME=VALUE, or NAME alone.
const (
	FactPart    = "part"    // a part of the confinement: its name, a word below, and why, with tabs between
	FactRoot    = "root"    // started as root
	FactName    = "name"    // the serving user
	FactUID     = "uid"     // … as a number
	FactUnfit   = "unfit"   // why that user is only accepted with disable_user_check
	FactBecome  = "become"  // become_user
	FactLocal   = "local"   // peers that the kernel identifies are served
	FactMunge   = "munge"   // workers connect to munged, or to a socket of auth/slurm
	FactDial    = "dial"    // connections to daemons over TCP: how many concurrently
	FactTLS     = "tls"     // there is a TLS key
	FactTokens  = "tokens"  // there is a token key
	FactTasks   = "tasks"   // the process limit of a worker's user
	FactKeeper  = "keeper"  // a keeper was started, with this uid
	FactFailed  = "failed"  // a worker or the keeper could not be started
	FactRefused = "refused" // the start requires what is missing
)

// Part is a part of the confinement that a worker inherits.
type Part struct {
	Name string
	Is   string // a word below; "": it needs no mention
	Why  string // the part is not on; or how a part that is on is called in the log
}

func (p *Part) Walk(w *Walker) { w.Text(maxName, &p.Name, &p.Is, &p.Why) }

// NoUserNamespace is the reason why a process lacks a part that needs a user
// namespace.
const NoUserNamespace = "without a user namespace"

// The states of a part.
const (
	PartOn          = "on"
	PartOff         = "off"         // switched off
	PartMissing     = "missing"     // this kind of start should have it
	PartUnpermitted = "unpermitted" // this user lacks the permission for it
	PartOfRoot      = "of root"     // only root has it
)
