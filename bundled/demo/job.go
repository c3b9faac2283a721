package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"schedrestd/become/nss"
	"schedrestd/bundled/demo/site"
	"schedrestd/internal/errs"
)

// script is the job that the demo shows. It runs long enough for the user to
// see it running.
const script = `#!/bin/sh
echo "Hello from job $SCHED_JOB_ID on $(uname -n). I am $(id -un 2>/dev/null || true)."
for part in 1 2 3; do
	echo "part $part of 3"
	sleep 0.3
done
`

// pollInterval is the pause between two polls of a job.
const pollInterval = 50 * time.Millisecond

// maxOutput limits how many bytes of a job's output are printed.
const maxOutput = 64 << 10

// showJob shows what the REST API can do. It sends a ping, requests information
// about a node, and follows a job from its submission to its output.
func (s *stage) showJob(ctx context.Context) error {
	s.screen.printIdentities(s)
	s.screen.printf("\n")
	ping, err := s.gateway.Ping(ctx)
	if err != nil {
		return err
	}
	s.screen.printf("ping    %s is up, %d µs from the gateway\n", ping.Hostname, ping.Latency)
	n, err := s.gateway.Node(ctx, s.Node)
	if err != nil {
		return err
	}
	s.screen.printf("node    %s: %s, %d CPUs, %d MB, %s\n", n.Name, strings.Join(n.State, "+"), n.CPUs, n.Memory, n.OS)
	id, err := s.gateway.Submit(ctx, s.describeJob("hello", script))
	if err != nil {
		return err
	}
	s.screen.printf("submit  job %d\n", id)
	job, err := s.followJob(ctx, id)
	if err != nil {
		return err
	}
	if err := s.printOutput(id); err != nil {
		return err
	}
	if state := strings.Join(job.State, "+"); state != "COMPLETED" {
		return errs.New(errs.Internal, "job %d ended as %s, exit code %d", id, state, job.Exit.Code.Number)
	}
	return nil
}

// describeJob returns the description of a job of the demo's user. The job runs
// in the demo's job directory.
func (h *home) describeJob(name, script string) site.Description {
	var d site.Description
	d.Job.Name, d.Job.Script, d.Job.WorkDir = name, script, h.jobDir()
	d.Job.Environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	d.Job.TimeLimit = 5
	return d
}

// exampleBody returns the body of a request that submits a job. printWelcome
// prints the body in a command that the user can paste.
func (h *home) exampleBody() string {
	d := h.describeJob("hello", "#!/bin/sh\necho Hello from job $SCHED_JOB_ID\n")
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.Encode(d) // can't fail for strings and numbers
	return strings.TrimSpace(text.String())
}

// followJob prints the job's state until the job has ended.
func (s *stage) followJob(ctx context.Context, id uint32) (site.Job, error) {
	startedAt, lastState := time.Now(), ""
	defer s.screen.endLine()
	for {
		j, err := s.gateway.Job(ctx, id)
		if err != nil {
			return site.Job{}, err
		}
		state := strings.Join(j.State, "+")
		if !j.Active() {
			s.screen.update("follow  %s, exit code %d, after %.1f s", state, j.Exit.Code.Number, time.Since(startedAt).Seconds())
			return j, nil
		}
		if state != lastState || s.screen.terminal {
			s.screen.update("follow  %s, %.1f s", state, time.Since(startedAt).Seconds())
			lastState = state
		}
		select {
		case <-ctx.Done():
			return site.Job{}, ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// printOutput prints the output of the job.
//
// The job directory belongs to the demo's user, and this process may run as
// root. So printOutput opens only a regular file, and does not follow links out
// of the directory.
func (s *stage) printOutput(id uint32) error {
	jobs, err := os.OpenRoot(s.jobDir())
	if err != nil {
		return err
	}
	defer jobs.Close()
	name := fmt.Sprintf("sched-%d.out", id)
	f, err := jobs.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errs.Wrap(err, errs.NotFound, "open job output")
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return errs.New(errs.Invalid, "job output %s is not a regular file", f.Name())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxOutput))
	if err != nil {
		return err
	}
	s.screen.printf("output  %s, owned by %s\n\n", f.Name(), owner(st))
	for line := range strings.Lines(string(text)) {
		s.screen.printf("  | %s\n", strings.TrimRight(line, "\n"))
	}
	s.screen.printf("\n")
	return nil
}

// owner returns the owner of file st.
func owner(st os.FileInfo) string {
	uid := st.Sys().(*syscall.Stat_t).Uid
	if u, err := nss.LookupUID(uid); err == nil {
		return u.Name
	}
	return fmt.Sprintf("uid %d", uid)
}
