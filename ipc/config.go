package ipc

import "schedrestd/internal/errs"

// Bounds of the messages between schedrestd-config and the parent. All are in
// bytes except maxOwners, which is a number of ids.
const (
	maxPath     = 4095 // a path, as the kernel's PATH_MAX
	maxVariable = 12 << 10
	maxCause    = 6 << 10 // the text of an error; its hint has the same limit
	maxOwners   = 8
)

// ConfigSetup is the parent's first message to schedrestd-config.
type ConfigSetup struct {
	Root          bool   // the parent runs as root: it checks files strictly, and can switch to other users
	PassedSockets bool   // listening sockets were passed to the parent
	Terminal      bool   // the parent's standard input is a terminal
	Reload        bool   // a reload: errors are sent in PlanFailed, and not written to standard error
	Directory     string // the parent's working directory; "" when it has no name
	Variables     uint16 // how many environment variables follow

	SchedUID   uint32 // at a reload: the SchedUID of the current Plan
	SocketMode uint16 // at a reload: the SocketMode of the current Plan
}

func (s *ConfigSetup) Walk(w *Walker) {
	w.version()
	w.Fields(&s.Root, &s.PassedSockets, &s.Terminal, &s.Reload)
	w.Text(maxPath, &s.Directory)
	w.Fields(&s.Variables, &s.SchedUID, &s.SocketMode)
}

// Variable is one environment variable, as NAME=value. It is sent in a message
// and not in the environment with which package stage starts schedrestd-config,
// because every user can read that environment.
type Variable struct{ Text string }

func (v *Variable) Walk(w *Walker) { w.Text(maxVariable, &v.Text) }

// Purpose is the reason for opening a file. It determines how the parent checks
// the file.
type Purpose uint8

const (
	OpenConfiguration Purpose = iota + 1 // a configuration file
	OpenAccounts                         // a list of uids that only root may change
	OpenWorker                           // the worker's program, to execute it; the parent knows its path
	OpenNothing                          // open nothing: report whether the path exists
)

// OpenFile asks the parent to open a file. The answer is OpenedFD or
// CheckResult.
type OpenFile struct {
	Purpose Purpose
	Path    string
}

func (o *OpenFile) Walk(w *Walker) {
	Enum(w, &o.Purpose, "purpose", OpenConfiguration, OpenNothing)
	w.Text(maxPath, &o.Path)
}

// OpenedFD carries the file that an OpenFile asked for.
type OpenedFD struct{ NoFields }

// CheckOwners asks the parent to check every configuration file that it has
// opened for schedrestd-config. Each file must belong to root or to one of
// Owners. Only root, the Owners and the Groups may have write permission. The
// answer is a CheckResult.
type CheckOwners struct {
	Owners []uint32
	Groups []uint32
}

func (j *CheckOwners) Walk(w *Walker) {
	List(w, &j.Owners, maxOwners, 4, func(id *uint32) { w.Fields(id) })
	List(w, &j.Groups, maxOwners, 4, func(id *uint32) { w.Fields(id) })
}

// Failure is an error that is sent to another process.
type Failure struct {
	Class uint8 // an errs.Kind
	Text  string
	Hint  string
}

func (f *Failure) Walk(w *Walker) {
	w.Fields(&f.Class)
	w.Text(maxCause, &f.Text, &f.Hint)
}

func (f *Failure) Err() error {
	return &errs.Error{Kind: errs.Kind(f.Class), Message: f.Text, Hint: f.Hint}
}

// FailureOf returns err as a Failure. It truncates the text and the hint to
// maxCause bytes each.
func FailureOf(err error) Failure {
	text, hint := err.Error(), errs.HintOf(err)
	return Failure{uint8(errs.KindOf(err)), text[:min(len(text), maxCause)], hint[:min(len(hint), maxCause)]}
}

// Result is the result of an operation: OK, or the Failure.
type Result struct {
	OK bool
	Failure
}

// ResultOf returns the Result of an operation that returned err.
func ResultOf(err error) Result {
	if err == nil {
		return Result{OK: true}
	}
	return Result{Failure: FailureOf(err)}
}

// Err returns the failure, or nil if r is OK.
func (r *Result) Err() error {
	if r.OK {
		return nil
	}
	return r.Failure.Err()
}

func (r *Result) Walk(w *Walker) { w.Fields(&r.OK, &r.Failure) }

// CheckResult answers CheckOwners and SecretKeysResult. It also answers an
// OpenFile if the parent sends no file.
// OK means that the path exists, that the files are acceptable, or that the
// keeper gets other keys.
type CheckResult struct{ Result }

// PlanFailed reports that a reload failed, and why.
type PlanFailed struct{ Failure }
