package ipc

// ProveMode is the argument that starts the worker's program as a test of the sandbox
// (package proof). It is followed by the Seal of the sandbox, one of the words below,
// the time limit of one case and, for ProvePage, facts. The exit status is 0 when the
// sandbox works.
const (
	ProveMode   = "prove"
	ProveClosed = "closed" // test that the sandbox can be entered
	ProveSmoke  = "smoke"  // … and that it kills, with one case of each kind
	ProvePage   = "page"   // … with all cases, and print a page for the administrator
)

// DeathTests is the number of cases that run concurrently.
const DeathTests = 8

// A line on the standard error of such a process begins with one of these words.
// Other lines are for the administrator.
const (
	SaySealed = "sealed: " // the parts of the sandbox: a line of security.Sealed
	SayFailed = "failed: " // why the sandbox does not work
	SayHint   = "hint: "   // what would help
)

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

// The states of a part.
const (
	PartOn          = "on"
	PartOff         = "off"         // switched off
	PartMissing     = "missing"     // this kind of start should have it
	PartUnpermitted = "unpermitted" // this user lacks the permission for it
	PartOfRoot      = "of root"     // only root has it
)
