package gatewaytoken

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keptAfterEnd is for how long a line about a token stays after the token's end, so that
// a gateway whose clock is slow revokes no less.
const keptAfterEnd = 24 * time.Hour

// Pruned returns a register without the lines that have no effect any longer: about
// tokens that have ended, about their revocation by id, and about revocations that a
// later one includes or that concern only tokens which have ended.
//
// An attacker who controls a keeper can append lines, and must not be able to have a
// revocation removed with them. So the revocation of a token stays if the token was
// recorded only afterwards, or if any line says that it has not ended.
func Pruned(text []byte, now time.Time) ([]byte, error) {
	r, err := ParseRegister(text)
	if err != nil {
		return nil, err
	}
	old := now.Add(-keptAfterEnd)
	ends := map[string]time.Time{} // the latest, by id
	for _, c := range r.Created {
		if c.Until.IsZero() { // the line does not say when
			c.Until = now
		}
		if c.Until.After(ends[c.ID]) {
			ends[c.ID] = c.Until
		}
	}
	recorded := map[string]bool{}
	var kept []byte
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "token":
			recorded[words[1]] = true
			if ends[words[1]].Before(old) {
				continue
			}
		case words[1] == "token":
			if recorded[words[2]] && ends[words[2]].Before(old) {
				continue
			}
		default:
			before, _ := parseTime(words[len(words)-1])
			last := r.all
			if words[1] == "user" {
				last = r.users[words[2]]
			}
			if before.Before(last) || before.Before(old.Add(-MaxLifetime)) {
				continue
			}
		}
		kept = append(kept, line...)
	}
	return kept, nil
}

// Prune replaces the register that f has open by its pruned content, and returns how many
// bytes it has lost. Only this removes lines, and only the owner of the file runs it:
// gateways append. One that appends meanwhile notices that the file was replaced, and
// reports that its line has no effect.
func Prune(f *os.File, now time.Time) (removed int, err error) {
	defer lockRegister(f)()
	text, err := ReadText(f)
	if err != nil {
		return 0, err
	}
	kept, err := Pruned(text, now)
	if err != nil {
		return 0, &LineError{err}
	}
	if len(kept) == len(text) {
		return 0, nil
	}
	return len(text) - len(kept), replace(f, text, kept)
}

// replace replaces the file f, which contains text, by one that contains kept, with the
// same owner and mode. A line that another process has appended without the lock is
// appended to the new file, too.
func replace(f *os.File, text, kept []byte) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if named, err := os.Lstat(f.Name()); err != nil || named.Mode().Type() != 0 {
		return errors.Join(fmt.Errorf("%s is not a regular file: %w", f.Name(), fs.ErrInvalid), err)
	}
	next, err := os.CreateTemp(filepath.Dir(f.Name()), ".tokens-")
	if err != nil {
		return err
	}
	defer next.Close()
	defer os.Remove(next.Name()) // without effect after the rename
	write := func(text []byte) error {
		_, err := next.Write(text)
		return errors.Join(err, next.Sync())
	}
	if err := errors.Join(next.Chown(int(st.Uid), int(st.Gid)), next.Chmod(fs.FileMode(st.Mode&0o777)), write(kept)); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), f.Name()); err != nil {
		return err
	}
	later, err := ReadText(f)
	if err == nil && bytes.HasPrefix(later, text) && len(later) > len(text) {
		err = write(later[len(text):])
	}
	if dir, dirErr := os.Open(filepath.Dir(f.Name())); dirErr == nil {
		err = errors.Join(err, dir.Sync(), dir.Close())
	}
	return err
}
