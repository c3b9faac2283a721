// Package step runs one job in a process that outlives the controller.
//
// The controller starts the step process from its own executable, and passes
// the job's Spec in a sealed memory file. Once the step has claimed the job,
// the step and the controller communicate only through signals and a directory.
// This directory, below the controller's state directory, is the home of the
// job's run:
//
//	home/         created by the controller: permission to start; removing it while it is empty withdraws the permission
//	home/claim    created by the step, exclusively and durably, before any process of the job runs
//	home/limit    created by the controller: a changed time limit
//	home/outcome  created by the step, atomically and durably, when all processes of the job have exited
//
// A restarted controller reads these files. If there is no claim, the job was
// never started and may be started. If the process named in the claim is
// running, the job is running. If there is an outcome, the job has ended. If
// there is a claim, but no such process and no outcome, the job is lost and
// must not run again.
//
// A step has two stages, because Go can't fork without exec. The first stage
// (watch) runs as the controller's user, usually root. It claims the job,
// enforces time and memory limits, kills the whole process tree when the job
// must end, and writes the outcome. It never uses a path that the user names.
// The second stage (start) runs as the job's user from its first instruction
// (see package become/stage). It enters the working directory, opens the output
// file and executes the script. If root opened the output file, a user could
// put a link to /etc/shadow in its place, and root would overwrite /etc/shadow.
// The second stage can't do this, because the job's user may not write to
// /etc/shadow.
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

	"schedrestd/bundled/ctld/cgroup"
	"schedrestd/bundled/ctld/process"
)

// A Spec holds everything that a step needs to know about its job.
type Spec struct {
	Job         uint32        `json:"job"`
	Home        string        `json:"home"`           // absolute; see the package comment
	User        *User         `json:"user,omitempty"` // nil: the controller's own user
	Script      Raw           `json:"script"`         // begins with #!
	Args        []Raw         `json:"args,omitempty"` // of the script
	Environment []Raw         `json:"environment"`    // NAME=value; for the script only
	WorkDir     Raw           `json:"work_dir"`       // absolute
	Output      Raw           `json:"output"`         // absolute, like the two below; relative to WorkDir in jobs of earlier releases
	Error       Raw           `json:"error,omitempty"`
	Input       Raw           `json:"input,omitempty"` // empty: /dev/null
	Append      bool          `json:"append,omitempty"`
	TimeLimit   time.Duration `json:"time_limit,omitempty"` // 0: none
	Memory      uint64        `json:"memory,omitempty"`     // bytes, for all processes together; 0: no limit
	KillWait    time.Duration `json:"kill_wait"`            // from SIGTERM to SIGKILL
	Cgroup      cgroup.Base   `json:"cgroup,omitzero"`      // empty path: memory is sampled
}

// User is the identity that the job runs as.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"` // supplementary
}

// Raw is a string from a user that must be stored byte for byte. Scripts, paths
// and variables may contain bytes that are not UTF-8, and JSON would silently
// replace them.
type Raw string

// MarshalJSON writes r as a JSON string, or as {"b64": "…"}. It writes the
// second form if a JSON string would change the bytes or would be longer. In a
// JSON string, one byte may take six bytes.
func (r Raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) && quotedLen(string(r)) <= base64.StdEncoding.EncodedLen(len(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(map[string][]byte{"b64": []byte(r)})
}

// quotedLen returns the approximate length of s as a JSON string.
func quotedLen(s string) (n int) {
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

// sealedFile returns a memory file that has the given content and can no longer
// be modified.
func sealedFile(name string, content []byte) (*os.File, error) {
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

// readSpec reads the Spec from f, the memory file that the controller made.
func readSpec(f *os.File) (*Spec, error) {
	// The read position is shared with other descriptors of the same file, and
	// may have changed. So readSpec reads from the start.
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("no job was passed (only schedctld can start this program): %w", err)
	}
	spec := new(Spec)
	if err := json.Unmarshal(b, spec); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	return spec, nil
}

// stepVariable returns the environment variable that identifies the step. All
// processes of the job inherit this variable. KillOrphans uses it to find them
// when the step has been killed.
func stepVariable(id process.Identity) string {
	return fmt.Sprintf("SCHED_STEP_PROCESS=%d:%d", id.PID, id.Start)
}
