package inetd

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestActivated passes a listening socket to the gateway, either as standard
// input or in the way a service manager does. The gateway must serve this
// socket as if its arguments named it. But it must not remove the file of a
// UNIX socket.
func TestActivated(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	serve := func(t *testing.T, cmd *exec.Cmd, network, address string) {
		t.Helper()
		var log bytes.Buffer
		cmd.Stderr = &log
		harness.Must(t, cmd.Start())
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial(network, address) }}}
		for range 2 { // the first request waits in the socket's queue until the gateway is ready
			sendPing(l, t, client).Want(t, 200)
		}
		harness.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer tcp.Close()
	path := filepath.Join(l.Dir, "run", "given")
	local, err := net.Listen("unix", path)
	harness.Must(t, err)
	defer local.Close()
	harness.Must(t, os.Chmod(path, 0o640))
	tcpFile, err := tcp.(*net.TCPListener).File()
	harness.Must(t, err)
	defer tcpFile.Close()
	localFile, err := local.(*net.UnixListener).File()
	harness.Must(t, err)
	defer localFile.Close()

	t.Run("standard input", func(t *testing.T) {
		cmd := l.InetdCommand()
		cmd.Stdin = tcpFile
		serve(t, cmd, "tcp", tcp.Addr().String())
	})
	t.Run("service manager", func(t *testing.T) {
		cmd := l.InetdCommand()
		// LISTEN_PID must be the process id of the gateway. A shell can set it,
		// because the shell's own process becomes the gateway.
		cmd.Args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=one:two exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		cmd.ExtraFiles = []*os.File{localFile, tcpFile}
		serve(t, cmd, "unix", path)
		st, err := os.Stat(path)
		if err != nil || st.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	})
	t.Run("another's", func(t *testing.T) { // LISTEN_PID names another process, so the gateway ignores the socket; its standard input is empty
		cmd := l.InetdCommand()
		cmd.Env = append(cmd.Env, "LISTEN_PID=1", "LISTEN_FDS=1")
		cmd.ExtraFiles = []*os.File{tcpFile}
		if out, log, status := harness.RunCommand(t, cmd); status != 0 || out != "" {
			t.Errorf("exit status %d: %s\n%s", status, out, log)
		}
	})
	t.Run("not listening", func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		harness.Must(t, err)
		defer null.Close()
		cmd := l.InetdCommand()
		cmd.Args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		cmd.ExtraFiles = []*os.File{null}
		if _, log, status := harness.RunCommand(t, cmd); status != 1 || !strings.Contains(log, "is not a listening stream socket") {
			t.Errorf("exit status %d\n%s", status, log)
		}
	})
}

// sendPing sends a ping through client.
func sendPing(l *harness.Lab, t *testing.T, client *http.Client) harness.Answer {
	t.Helper()
	a, err := l.TryRequest(client, "GET", "/sched/v0.0.43/ping", "")
	harness.Must(t, err)
	return a
}
