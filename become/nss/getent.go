package nss

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/become/stage"
	"schedrestd/internal/errs"
)

// maxAnswer limits the output of getent, in bytes. A group at a large site may
// have tens of thousands of members.
const maxAnswer = 4 << 20

// getent looks up one entry through NSS and returns the output without the last
// line feed. The error Unsupported means that there is no getent, or that it
// does not support the database.
func (n *source) getent(database, key string) (string, error) {
	q := question{database, key}
	if a, ok := n.cachedAnswer(q); ok {
		return a.text, a.err
	}
	text, err := n.query(database, key)
	n.cacheAnswer(q, text, err)
	return text, err
}

func (n *source) query(database, key string) (string, error) {
	tool := n.tool()
	if tool == "" {
		return "", errs.New(errs.Unsupported, "getent not found")
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	out, err := run(ctx, tool, database, key)
	switch {
	case err == nil && database != "ahosts" && strings.Contains(out.buf.String()[:max(0, out.buf.Len()-1)], "\n"):
		return "", errs.New(errs.Unavailable, "getent %s %s returned more than one entry", database, key)
	case out.exceeded:
		return "", errs.New(errs.Unavailable, "getent %s %s returned more than %d bytes", database, key, maxAnswer)
	case ctx.Err() != nil:
		return "", errs.New(errs.Unavailable, "getent %s %s did not answer within %s", database, key, n.timeout)
	case err == nil:
		return strings.TrimSuffix(out.buf.String(), "\n"), nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", errs.Wrap(err, errs.Unavailable, "run getent %s %s", database, key)
	}
	switch exit.ExitCode() {
	case 1: // "missing arguments, or database unknown"
		return "", errs.New(errs.Unsupported, "getent does not support %s", database)
	case 2:
		return "", notFound(database, key)
	}
	return "", errs.Wrap(err, errs.Unavailable, "run getent %s %s", database, key)
}

// run runs getent without this process's privileges and terminal. getent does
// not inherit the environment, which may contain a token or LD_PRELOAD.
//
// If this process is root, getent runs under an unused id. If another process
// had the same uid as getent, it could stop getent, take over its pipe and
// answer in its place. Root trusts the answer, which determines the user and
// the groups of a job.
func run(ctx context.Context, tool, database string, keys ...string) (*cappedBuffer, error) {
	target := stage.Target{Path: tool, Argv: append([]string{tool, database}, keys...), Env: []string{"LC_ALL=C"}}
	if os.Geteuid() != 0 {
		return execute(ctx, tool, target.Argv, target.Env)
	}
	id, err := become.UnusedID()
	if err != nil {
		return new(cappedBuffer), err
	}
	target.UID, target.GID = id, id
	argv, env := target.Command()
	return execute(ctx, stage.Program, argv, env)
}

func execute(ctx context.Context, path string, argv, env []string) (*cappedBuffer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &cappedBuffer{remaining: maxAnswer, stop: cancel}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdout = argv, env, "/", out
	cmd.WaitDelay = time.Second // a grandchild of this process may hold the pipe open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return out, cmd.Run()
}

// tool returns the path of the installed getent, or "" if there is none. It
// never uses PATH, because the user who sets PATH could then choose the
// program.
func (n *source) tool() string {
	for _, t := range n.tools {
		if st, err := os.Stat(t); err == nil && st.Mode().IsRegular() {
			return t
		}
	}
	return ""
}

// cappedBuffer keeps the bytes that are written to it, up to a limit. A Write
// that would exceed the limit calls stop. If buf were embedded, io.Copy would
// find its method ReadFrom and bypass the limit.
type cappedBuffer struct {
	buf       bytes.Buffer
	remaining int
	exceeded  bool
	stop      func()
}

// Write stores p if it fits. Otherwise it calls stop to kill getent. Closing
// the pipe is not enough, because getent may ignore SIGPIPE.
func (c *cappedBuffer) Write(p []byte) (int, error) {
	if len(p) > c.remaining {
		c.exceeded = true
		c.stop()
		return 0, io.ErrShortWrite
	}
	c.remaining -= len(p)
	return c.buf.Write(p)
}
