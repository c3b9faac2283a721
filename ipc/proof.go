package ipc

// ProveMode starts the worker's program as a process that proves the sandbox
// (package proof). After it come the Seal to close the sandbox with, one of the words
// below, the time for one case, and for ProvePage facts. The exit status is 0 when
// the sandbox holds.
const (
	ProveMode   = "prove"
	ProveClosed = "closed" // that it can be closed
	ProveSmoke  = "smoke"  // … and kills, for one case of each kind
	ProvePage   = "page"   // … for all there are, with a page for the administrator
)

// DeathTests is how many cases run concurrently.
const DeathTests = 8

// A line on such a process's standard error begins with one of these words, or is
// for the administrator.
const (
	SaySealed = "sealed: " // how the sandbox was closed: a line of security.Sealed
	SayFailed = "failed: " // why it does not hold
	SayHint   = "hint: "   // what would help
)

// A fact for the page is an argument NAME=VALUE, or NAME alone.
const (
	FactPart    = "part"    // a part of the confinement: its name, a word below, and why, with tabs between
	FactRoot    = "root"    // started as root
	FactName    = "name"    // the serving user
	FactUID     = "uid"     // … as a number
	FactUnfit   = "unfit"   // why that user would not be served as, but for disable_user_check
	FactBecome  = "become"  // become_user
	FactLocal   = "local"   // peers that the kernel vouches for are served
	FactMunge   = "munge"   // workers connect to munged
	FactDial    = "dial"    // connections to daemons over TCP: in one go, per second, at one time
	FactTLS     = "tls"     // there is a TLS key
	FactTokens  = "tokens"  // there is a key of tokens
	FactTasks   = "tasks"   // most processes of a worker's user
	FactKeeper  = "keeper"  // a keeper was started, with this uid
	FactFailed  = "failed"  // a worker or the keeper could not be started
	FactRefused = "refused" // the start requires what is missing
)

// How a part stands.
const (
	PartOn          = "on"
	PartOff         = "off"         // switched off
	PartMissing     = "missing"     // this kind of start should have it
	PartUnpermitted = "unpermitted" // this user lacks the permission for it
	PartOfRoot      = "of root"     // only root has it
)
