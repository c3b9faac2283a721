package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"schedrestd/bundled/ctld/process"
)

// ErrClaimed is returned when another step has claimed the job.
var ErrClaimed = errors.New("the job is claimed by another step")

// ErrDamaged is returned for a file that can be read but not decoded.
var ErrDamaged = errors.New("damaged")

// ErrNewer is returned for a file that a newer version of this program wrote.
var ErrNewer = errors.New("written by a newer version of this program")

// A Claim records which step process runs the job. A claim never changes.
type Claim struct {
	Format  int              `json:"format"`
	Step    process.Identity `json:"step"`
	Started time.Time        `json:"started"`
	Cgroup  string           `json:"cgroup,omitempty"` // of the job, if it has one
}

// State is how a job ended.
type State string

// The states that a step reports.
const (
	Completed   State = "COMPLETED"
	Failed      State = "FAILED"
	Cancelled   State = "CANCELLED"
	Timeout     State = "TIMEOUT"
	OutOfMemory State = "OUT_OF_MEMORY"
	NotStarted  State = "NOT_STARTED" // the script has not run, for a reason that has nothing to do with the job
)

// Outcome records how the job ended.
type Outcome struct {
	Format     int           `json:"format"`
	State      State         `json:"state"`
	Status     uint32        `json:"status"`           // status of wait(2): exit code in bits 8 to 15, signal in bits 0 to 6
	Reason     string        `json:"reason,omitempty"` // why the script could not be started
	Started    time.Time     `json:"started"`
	Ended      time.Time     `json:"ended"`
	UserTime   time.Duration `json:"user"` // CPU time of all processes
	SystemTime time.Duration `json:"system"`
	MaxRSS     uint64        `json:"max_rss"` // bytes: of all processes if they were sampled, otherwise of the largest one
}

// These constants are the format versions of claims and outcomes. After an
// upgrade, the step that wrote a file may be older or newer than the controller
// that reads the file. Claim format 2 means that the step applies the time
// limit in the file home/limit.
const (
	claimFormat   = 2
	outcomeFormat = 1
)

// Adjustable reports whether the step obeys a changed time limit. A step from
// an older release has no handler for the signal that announces the change, so
// the signal would kill the step.
func (c Claim) Adjustable() bool { return c.Format >= 2 }

// A Limit is a time limit that replaces the time limit in the Spec.
type Limit struct {
	TimeLimit time.Duration `json:"time_limit"` // from the start of the job; 0: none
}

// Prepare creates the directory home. A step may claim the job only while this
// directory exists.
func Prepare(home string) error {
	err := os.Mkdir(home, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Withdraw removes the directory that Prepare created, so that no step can
// claim the job any more, not even a slow step of an earlier controller. If a
// step has already claimed the job, Withdraw returns ErrClaimed.
func Withdraw(home string) error {
	err := syscall.Rmdir(home)
	switch {
	case err == nil, errors.Is(err, syscall.ENOENT):
		return nil
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST):
		return ErrClaimed
	}
	return fmt.Errorf("withdraw %s: %w", home, err)
}

// RemoveHome removes the directory home, which the controller no longer needs.
// It first renames the directory. Otherwise a slow step could claim the job
// again while the claim is already gone but the directory still exists.
func RemoveHome(home string) error {
	trash := home + ".gone"
	if err := os.RemoveAll(trash); err != nil {
		return err
	}
	if err := os.Rename(home, trash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(trash)
}

// RemoveLeftovers cleans up after crashes. It removes drafts of claims, and
// directories that RemoveHome renamed but did not remove. The directory homes
// contains the directories of all runs.
func RemoveLeftovers(homes string) error {
	entries, err := os.ReadDir(homes)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(homes, e.Name())))
		}
	}
	return err
}

// writeClaim stores c as the claim in the directory home. It writes a draft,
// and then calls link(2) to make the draft the claim. This call is atomic, so
// no reader sees an incomplete claim. It fails if there already is a claim.
// writeClaim returns only when the claim is on disk. If it returned earlier,
// the job could start a second time after a power failure.
func writeClaim(home string, c Claim) error {
	c.Format = claimFormat
	draft, claim := fmt.Sprintf("%s.%d", home, c.Step.PID), filepath.Join(home, "claim")
	os.Remove(draft) // left by an earlier step with this process id
	if err := writeSynced(draft, c); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	err := os.Link(draft, claim)
	os.Remove(draft)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return ErrClaimed // or the start was withdrawn; either way, this step must not run the job
	case err != nil:
		return fmt.Errorf("claim: %w", err)
	}
	if err = syncDir(home); err == nil {
		err = syncDir(filepath.Dir(home))
	}
	if err != nil {
		// This step will not run the job. If it left the claim, the job would
		// be reported as lost.
		return errors.Join(fmt.Errorf("claim: %w", err), os.Remove(claim))
	}
	return nil
}

// ReadClaim reads the claim in the directory home. If there is no claim, ok is
// false.
func ReadClaim(home string) (c Claim, ok bool, err error) {
	ok, err = readFile(filepath.Join(home, "claim"), &c)
	if err == nil && c.Format > claimFormat {
		err = fmt.Errorf("%s/claim: format %d: %w", home, c.Format, ErrNewer)
	}
	return c, ok, err
}

// writeOutcome stores o as the outcome in the directory home.
func writeOutcome(home string, o Outcome) error {
	o.Format = outcomeFormat
	return replaceFile(home, "outcome", o)
}

// replaceFile atomically and durably writes v to the named file in the
// directory home.
func replaceFile(home, name string, v any) error {
	draft := filepath.Join(home, name+".new")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(draft, v); err != nil {
		return err
	}
	if err := os.Rename(draft, filepath.Join(home, name)); err != nil {
		return err
	}
	return syncDir(home)
}

// ReadOutcome reads the outcome in the directory home. If there is no outcome
// yet, ok is false.
func ReadOutcome(home string) (o Outcome, ok bool, err error) {
	ok, err = readFile(filepath.Join(home, "outcome"), &o)
	if err == nil && o.Format > outcomeFormat {
		err = fmt.Errorf("%s/outcome: format %d: %w", home, o.Format, ErrNewer)
	}
	return o, ok, err
}

func readFile(path string, v any) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return true, nil
}

func writeSynced(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir waits until the entries of a directory are on disk. Tests let it fail.
var syncDir = func(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
