// Package tokenfile gives a keeper the register of gateway tokens, and gives it
// again whenever the file changes.
//
// This process opens the file, because a keeper opens none. The file must belong to
// the administrator, because it decides which tokens are revoked. It has no secrets. If
// it can't be used, the keeper refuses all gateway tokens.
package tokenfile

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// interval is the time between two looks at the file. A revocation takes effect
// within this time and that between two questions of a worker (package keys).
const interval = 300 * time.Millisecond

// A Follower follows the file for one keeper.
type Follower struct {
	Path   string
	Rules  work.TokenRegister // what else the keeper decides by; without Size
	Owners []uint32           // uids that may own the file, beside root
	Send   func(m ipc.Message, fds ...int) error
	Log    *slog.Logger

	stamp string // of the file that was sent last
	size  int    // of the register that was sent last, in bytes
	sent  bool   // a register was sent

	settled func(path string) bool // nil for isSettled
}

// settleTime is for how long a register that has become shorter must not change
// before it replaces the previous one. Some editors empty a file before they write
// it, and an empty register revokes nothing.
const settleTime = time.Second

func isSettled(path string) bool { return guard.IsSettled(path, settleTime) }

// Settle waits until the file has not changed for a while, but not longer than that
// takes for a file that no longer changes. A Follower that has sent no register yet
// can't know that this one is shorter.
func (f *Follower) Settle() {
	f.prepare()
	for end := time.Now().Add(settleTime); !f.settled(f.Path) && time.Now().Before(end); {
		time.Sleep(interval / 3)
	}
}

func (f *Follower) prepare() {
	if f.settled == nil {
		f.settled = isSettled
	}
}

// Start gives the keeper the register. It returns an error, with a hint, if the
// file can't be used.
func (f *Follower) Start() error {
	f.prepare()
	f.stamp = guard.Stamp(f.Path) // before the file is read, so that a change meanwhile is noticed
	return f.send()
}

// Run gives the keeper each new register, until done is closed.
func (f *Follower) Run(done <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		f.look()
	}
}

// look gives the keeper the register if the file has changed.
func (f *Follower) look() {
	stamp := guard.Stamp(f.Path)
	if stamp == f.stamp {
		return
	}
	if info, err := os.Stat(f.Path); err == nil && info.Size() < int64(f.size) && !f.settled(f.Path) {
		return // what it revoked stays revoked until then
	}
	f.stamp = stamp
	if err := f.send(); err != nil {
		f.Refuse(err)
		return
	}
	f.Log.Info("register of gateway tokens has changed", "path", f.Path)
}

// Refuse lets the keeper refuse all gateway tokens until the file changes.
func (f *Follower) Refuse(err error) {
	f.Log.Error("register of gateway tokens can't be used; all of them are refused until it can", errs.LogAttrs(errs.HintOf(err), "error", err)...)
	_ = f.Send(&work.NoTokenRegister{})
}

// send reads the file, and sends it if it can be used. An error of the channel is
// left to those who wait for the end of the keeper.
func (f *Follower) send() error {
	owners := append([]uint32{0, uint32(os.Geteuid())}, f.Owners...)
	rule := guard.Rule{Label: "register of gateway tokens", Owners: owners, Trust: &guard.Trust{Owners: owners}}
	file, _, err := guard.Open(f.Path, rule)
	if errs.KindOf(err) == errs.NotFound && f.sent {
		return withHint(err, "restore it from a backup: an empty one does not revoke what this one has revoked. If there is none, let it begin with: revoke all before "+time.Now().UTC().Format(time.RFC3339))
	}
	if errs.KindOf(err) == errs.NotFound {
		return withHint(err, "install -m 0644 /dev/null "+guard.Quote(f.Path))
	}
	if errs.KindOf(err) == errs.Denied {
		return withHint(err, fmt.Sprintf("namei -l %s  # it has no secrets, and the gateway's dispatcher (uid %d) must be able to read it", guard.Quote(f.Path), os.Geteuid()))
	}
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := content.ReadOpened(file, f.Path, rule, gatewaytoken.MaxRegister)
	if err != nil {
		return err
	}
	if _, err := gatewaytoken.ParseRegister(text); err != nil {
		return &errs.Error{Kind: errs.Invalid, Message: "register of gateway tokens " + f.Path, Err: err, Hint: "correct the line; schedctl token revoke adds lines without errors"}
	}
	f.size, f.sent = len(text), true
	m := f.Rules
	m.Size = uint32(len(text))
	_ = f.Send(&m, int(file.Fd()))
	return nil
}

func withHint(err error, hint string) error {
	return &errs.Error{Kind: errs.Invalid, Err: err, Hint: hint}
}
