// Package step is the process that runs one job and outlives the controller.
//
// The controller starts it from its own program, opened once, with the job's Spec in a sealed
// memory file. From then on they share nothing but a directory of the controller's
// state, the job's home, and signals:
//
//	home/         made by the controller: permission to start. Whoever removes it, empty, withdraws that
//	home/claim    made by the step, exclusively and durably, before anything of the job runs
//	home/outcome  made by the step, whole and durable, when nothing of the job runs any more
//
// So a controller that dies and returns learns all from the files: no claim, the job was
// never started, and may be; a claim and its process, it runs; an outcome, it ended; a claim
// without either, it is lost with its step and must not run again.
//
// The process has two stages, since Go can't fork without exec. The first (watch) is the
// controller's user, mostly root: it claims, keeps time and memory limits, ends the whole tree
// and writes the outcome, and never touches what the user names. The second
// (start) is already the user before its first instruction (package become/stage): it enters the working
// directory, opens the output and executes the script. Root would follow a link from
// the output to /etc/shadow; the user can't.
package step

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"schedrestd/ctld/cgroup"
	"schedrestd/ctld/process"
)

// Spec is all that a step knows of its job.
type Spec struct {
	Job         uint32        `json:"job"`
	Home        string        `json:"home"`           // absolute; see the package comment
	User        *User         `json:"user,omitempty"` // nil: stay who the controller is
	Script      Raw           `json:"script"`         // begins with #!
	Args        []Raw         `json:"args,omitempty"` // of the script
	Environment []Raw         `json:"environment"`    // NAME=value; for the script alone
	WorkDir     Raw           `json:"work_dir"`       // absolute
	Output      Raw           `json:"output"`         // relative to WorkDir, as the two below
	Error       Raw           `json:"error,omitempty"`
	Input       Raw           `json:"input,omitempty"` // empty: /dev/null
	Append      bool          `json:"append,omitempty"`
	TimeLimit   time.Duration `json:"time_limit,omitempty"` // 0: none
	Memory      uint64        `json:"memory,omitempty"`     // bytes, all processes together; 0: no limit
	KillWait    time.Duration `json:"kill_wait"`            // between SIGTERM and SIGKILL
	Cgroup      cgroup.Base   `json:"cgroup,omitzero"`      // empty path: memory is sampled
}

// User is who the job runs as.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"` // supplementary
}

// Raw is text of a user's that must stay as it is, byte for byte: scripts, paths and
// variables need not be UTF-8, and JSON would quietly replace what is not.
type Raw string

// MarshalJSON writes a string, or {"b64": "…"} when the string would be changed by that, or be longer: JSON takes up to
// six bytes for one.
func (r Raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) && quoted(string(r)) <= base64.StdEncoding.EncodedLen(len(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(map[string][]byte{"b64": []byte(r)})
}

// quoted returns about how long s is as a JSON string.
func quoted(s string) (n int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n' || c == '\r' || c == '\t' || c == '"' || c == '\\':
			n += 2
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += 6
		default:
			n++
		}
	}
	return n
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Raw) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		err := json.Unmarshal(b, &s)
		*r = Raw(s)
		return err
	}
	var o struct{ B64 []byte }
	err := json.Unmarshal(b, &o)
	*r = Raw(o.B64)
	return err
}

// sealed makes a memory file with content that nobody can change any more.
func sealed(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(content)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memory file: %w", err)
	}
	return f, nil
}

// receive reads the Spec that was handed over as f.
func receive(f *os.File) (*Spec, error) {
	// From its start, whatever was read through another descriptor of the same file.
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("no job was handed over (only schedctld can start this): %w", err)
	}
	spec := new(Spec)
	if err := json.Unmarshal(b, spec); err != nil {
		return nil, fmt.Errorf("read the job: %w", err)
	}
	return spec, nil
}

// mark is a variable in the environment of all processes of a job. It names the step that
// keeps them, so that they can be found when that is dead.
func mark(keeper process.Identity) string {
	return fmt.Sprintf("SCHED_STEP_PROCESS=%d:%d", keeper.PID, keeper.Start)
}
