package inetd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// TestExampleOfARequest checks that the output of -h contains an example that
// pipes a request to the gateway, and that this request is complete.
func TestExampleOfARequest(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	page, err := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-h").Output()
	harness.Must(t, err)
	var example string
	for line := range strings.Lines(string(page)) {
		if request, ok := strings.CutSuffix(line, "| schedrestd\n"); ok {
			example = request
		}
	}
	if example == "" {
		t.Fatalf("there is no example in\n%s", page)
	}
	gateway := l.InetdCommand()
	shell := exec.Command("sh", "-c", example+`| "$@"`, "sh")
	shell.Args = append(shell.Args, append([]string{gateway.Path}, gateway.Args[1:]...)...)
	shell.Env = gateway.Env
	out, log, _ := harness.RunCommand(t, shell)
	// The gateway may or may not accept the user who runs this test.
	if got := harness.Statuses(harness.ParseAnswers(t, out)); got != "[200]" && got != "[401]" {
		t.Errorf("%s is answered with %s\n%s%s", example, got, out, log)
	}
}

// TestInetdPipe checks that all requests on standard input are answered in
// order, whether or not they follow the HTTP specification. The exit status
// must say whether one of the answers was an error.
func TestInetdPipe(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	token := "X-SCHED-USER-TOKEN: " + l.OwnToken
	ping := func(eol string) string {
		return strings.Join([]string{"GET http://localhost/sched/v0.0.41/ping HTTP/1.1", token, "", ""}, eol)
	}
	job := l.JobRequest("true", nil)
	post := "POST /sched/v0.0.43/job/submit HTTP/1.1\r\n" + token + "\r\nContent-Type: application/json\r\n"
	tests := []struct {
		name, send, want string
	}{
		{"nothing", "", "[]"},
		{"empty lines", "\n\r\n\n", "[]"},
		{"CRLF", ping("\r\n"), "[200]"},
		{"LF", ping("\n"), "[200]"},
		{"three", ping("\n") + "\n" + ping("\r\n") + ping("\n"), "[200 200 200]"},
		{"HTTP/1.0", strings.Replace(ping("\n"), "/1.1", "/1.0", 1) + ping("\n"), "[200]"},
		{"with a Host", strings.Replace(ping("\n"), token, "Host: there\n"+token, 1), "[200]"},
		{"close", strings.Replace(ping("\n"), token, "Connection: close\n"+token, 1) + ping("\n"), "[200]"},
		{"no credential", "GET http://localhost/sched/v0.0.41/ping HTTP/1.1\n\n" + ping("\n"), "[401 200]"},
		{"unknown path", strings.Replace(ping("\n"), "ping", "pong", 1), "[404]"},
		{"body", post + "Content-Length: " + strconv.Itoa(len(job)) + "\r\n\r\n" + job + ping("\n"), "[200 200]"},
		{"chunks, which end the connection", post + "Transfer-Encoding: chunked\r\n\r\n5\r\n" + job[:5] + "\r\n" +
			strconv.FormatInt(int64(len(job)-5), 16) + ";x=y\r\n" + job[5:] + "\r\n0\r\nTrailing: yes\r\n\r\n" + ping("\n"), "[200]"},
		{"broken chunk", post + "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n" + ping("\n"), "[400]"},
		{"half a body", post + "Content-Length: 1000\r\n\r\n{", "[400]"},
		{"two Hosts", strings.Replace(ping("\n"), token, "Host: a\nHost: b\n"+token, 1) + ping("\n"), "[400]"},
		{"half a header", "GET http://localhost/sched/v0.0.41/ping HTTP/1.1\n", "[400]"},
		{"no request", "hello\n\n", "[400]"},
		{"a long line", "GET /" + strings.Repeat("x", 80<<10) + " HTTP/1.1\n\n", "[414]"},
		{"a long header", strings.Replace(ping("\n"), token, "X: "+strings.Repeat("x", 80<<10), 1), "[431]"},
		{"all answered before a bad one", ping("\n") + "hello\n\n", "[200 400]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := l.InetdCommand("-a", "rest_auth/jwt") // otherwise the gateway might accept the owner of the pipe without a token
			cmd.Stdin = strings.NewReader(tt.send)
			out, log, status := harness.RunCommand(t, cmd)
			got := harness.ParseAnswers(t, out)
			if harness.Statuses(got) != tt.want || status != exitStatus(got) {
				t.Errorf("%s, exit status %d, want %s\n%s", harness.Statuses(got), status, tt.want, log)
			}
			for _, a := range got {
				a.Want(t, a.Status)
			}
			if strings.Contains(log+out, l.OwnToken) {
				t.Error("the token is in the log")
			}
		})
	}
}

// exitStatus returns the exit status of a gateway that wrote the answers to a
// pipe or a file.
func exitStatus(answers []harness.Answer) int {
	if slices.ContainsFunc(answers, func(a harness.Answer) bool { return a.Status >= http.StatusBadRequest }) {
		return 1
	}
	return 0
}

// TestInetdFiles checks that standard input and output may be files. The
// gateway must append the answer to the output file.
func TestInetdFiles(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	in, out := filepath.Join(l.Dir, "in"), filepath.Join(l.Dir, "out")
	harness.Must(t, os.WriteFile(in, []byte("GET http://localhost/sched/v0.0.43/ping HTTP/1.1\nX-SCHED-USER-TOKEN: "+l.OwnToken+"\n\n"), 0o600))
	harness.Must(t, os.WriteFile(out, []byte("before\n"), 0o600))
	from, err := os.Open(in)
	harness.Must(t, err)
	defer from.Close()
	to, err := os.OpenFile(out, os.O_WRONLY|os.O_APPEND, 0)
	harness.Must(t, err)
	defer to.Close()
	cmd := l.InetdCommand()
	cmd.Stdin, cmd.Stdout = from, to
	_, log, status := harness.RunCommand(t, cmd)
	text, err := os.ReadFile(out)
	harness.Must(t, err)
	rest, ok := strings.CutPrefix(string(text), "before\n")
	if !ok || status != 0 {
		t.Fatalf("exit status %d, %q\n%s", status, text, log)
	}
	harness.ParseAnswers(t, rest)[0].Want(t, 200)
}

// TestInetdConfinement checks that the client's worker has a PID namespace only
// if the whole sandbox is required. With -v, the log must report whether the
// worker has a PID namespace.
func TestInetdConfinement(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewDaemons(t)
	request := "GET http://localhost/sched/v0.0.43/ping HTTP/1.1\nX-SCHED-USER-TOKEN: " + l.OwnToken + "\n\n"
	for _, tt := range []struct{ switches, args, want string }{
		{"require_confinement", "-v", "PID namespace, "},
		{"", "-v", `off="PID namespace (one client)"`},
		{"", "", ""},
	} {
		cmd := l.InetdCommand(strings.Fields(tt.args)...)
		cmd.Env = append(cmd.Env, "SCHEDRESTD_SECURITY="+tt.switches)
		cmd.Stdin = strings.NewReader(request)
		out, log, status := harness.RunCommand(t, cmd)
		if status != 0 || harness.Statuses(harness.ParseAnswers(t, out)) != "[200]" || !strings.Contains(log, tt.want) {
			t.Errorf("%q %s: exit status %d, %s\n%s", tt.switches, tt.args, status, out, log)
		}
		if logged := strings.Contains(log, "confinement of the workers"); logged != (tt.want != "") || strings.Contains(log, "not_applied") {
			t.Errorf("%q %s: %s", tt.switches, tt.args, log)
		}
	}
	// Only root can drop a group.
	conf, u := filepath.Join(l.Work, "sched.conf"), harness.OrdinaryUser(t)
	harness.Must(t, os.WriteFile(conf, []byte("ClusterName=c\nSchedctldHost=127.0.0.1\nAuthAltTypes=auth/jwt\n"), 0o644))
	cmd := l.InetdCommand()
	cmd.Env = append(cmd.Env, "SCHEDRESTD_SECURITY=require_confinement", "SCHED_JWT=daemon")
	cmd.Args = []string{cmd.Path, "-f", conf} // without -u
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{u.GID, u.GID + 40_000}}}
	cmd.Stdin = strings.NewReader(request)
	if out, log, status := harness.RunCommand(t, cmd); status != 1 || out != "" || !strings.Contains(log, "require_confinement: parts of the confinement are not available: ") || !strings.Contains(log, "dropping of supplementary groups") {
		t.Errorf("with a part of the sandbox, where all of it is required: exit status %d, %q\n%s", status, out, log)
	}
}

// TestInetdFails checks failures that keep the gateway from answering. The exit
// status must be 1, standard output must be empty, and the log must contain the
// reason.
func TestInetdFails(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	packets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	harness.Must(t, err)
	packetSocket := os.NewFile(uintptr(packets[0]), "packets")
	defer packetSocket.Close()
	defer unix.Close(packets[1])
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	harness.Must(t, err)
	defer full.Close()
	for _, tt := range []struct {
		name, want string
		change     func(*exec.Cmd)
	}{
		{"no configuration", "/nowhere", func(c *exec.Cmd) { c.Args = append(c.Args, "-f", "/nowhere/at/all") }},
		{"a socket of packets", "not a stream socket", func(c *exec.Cmd) { c.Stdin = packetSocket }},
		{"no client gets the answer", "could not write the answers", func(c *exec.Cmd) {
			c.Stdin, c.Stdout = strings.NewReader("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), full
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := l.InetdCommand()
			tt.change(cmd)
			if out, log, status := harness.RunCommand(t, cmd); status != 1 || !strings.Contains(log, tt.want) || out != "" {
				t.Errorf("exit status %d, %q\n%s", status, out, log)
			}
		})
	}
}

// TestInetdTerminal checks that a person at a terminal can type a request, see
// the answer, type another request, and stop the gateway with Ctrl-D or SIGINT.
func TestInetdTerminal(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for _, signal := range []syscall.Signal{0, syscall.SIGINT} {
		person, terminal := openTerminal(t)
		cmd := l.InetdCommand()
		cmd.Stdin, cmd.Stdout = terminal, terminal
		log, err := cmd.StderrPipe()
		harness.Must(t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		harness.Must(t, cmd.Start())
		terminal.Close()
		lines := bufio.NewScanner(log)
		hint := ""
		for hint == "" && lines.Scan() {
			if strings.Contains(lines.Text(), "interactive") {
				hint = lines.Text()
			}
		}
		if !strings.Contains(hint, "Ctrl-D") {
			t.Errorf("the hint for a closed connection is missing: %q", hint)
		}
		go func() { // otherwise writing to the log would block
			for lines.Scan() {
			}
		}()
		in := bufio.NewReader(person)
		for range 2 {
			for _, line := range []string{"GET /sched/v0.0.43/ping HTTP/1.1", "X-SCHED-USER-TOKEN: " + l.OwnToken, ""} {
				fmt.Fprintln(person, line)
			}
			for line := ""; !strings.HasPrefix(line, "HTTP/1.1 200"); { // the terminal first echoes the request
				line, err = in.ReadString('\n')
				harness.Must(t, err)
			}
			for line := ""; !strings.Contains(line, `"pings"`); {
				text, err := in.ReadString('}')
				harness.Must(t, err)
				line += text
			}
		}
		if signal == 0 {
			fmt.Fprint(person, "\x04")
		} else {
			harness.Must(t, cmd.Process.Signal(signal))
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("signal %v: %v", signal, err)
		}
		person.Close()
	}
}

// openTerminal opens a terminal and returns the person's side and the program's
// side.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	raw, err := person.SyscallConn()
	harness.Must(t, err)
	var n int
	harness.Must(t, raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	harness.Must(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	return person, program
}

// TestInetdSocket checks that the gateway serves a connected socket that it
// gets as standard input. inetd and socket units pass such sockets. The gateway
// must restore the socket's flags. A client that shuts down its sending side
// after a request must still get the answer.
func TestInetdSocket(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for _, network := range []string{"tcp", "unix", "pair", "two pairs"} {
		t.Run(network, func(t *testing.T) {
			client, programEnd, out := connect(t, network)
			cmd := l.InetdCommand()
			cmd.Stdin, cmd.Stdout = programEnd, programEnd
			if out != nil {
				cmd.Stdout = out
			}
			harness.Must(t, cmd.Start())
			fmt.Fprintf(client, "GET http://localhost/sched/v0.0.43/ping HTTP/1.1\r\nX-SCHED-USER-TOKEN: %s\r\n\r\n", l.OwnToken)
			harness.Must(t, client.(interface{ CloseWrite() error }).CloseWrite())
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			flags, err := unix.FcntlInt(fdOf(t, programEnd), unix.F_GETFL, 0)
			if err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("the socket was left with flags %#x, %v", flags, err)
			}
			programEnd.Close()
			if out != nil {
				out.Close()
			}
			text, err := io.ReadAll(client)
			harness.Must(t, err)
			if got := harness.ParseAnswers(t, string(text)); harness.Statuses(got) != "[200]" {
				t.Errorf("%s in %q", harness.Statuses(got), text)
			}
		})
	}
}

func fdOf(t *testing.T, f *os.File) (n uintptr) {
	t.Helper()
	raw, err := f.SyscallConn()
	harness.Must(t, err)
	harness.Must(t, raw.Control(func(fd uintptr) { n = fd }))
	return n
}

// pairConn reads from one connection and writes to another.
type pairConn struct {
	net.Conn
	out net.Conn
}

func (b pairConn) Write(p []byte) (int, error) { return b.out.Write(p) }
func (b pairConn) CloseWrite() error           { return b.out.(*net.UnixConn).CloseWrite() }

// connect opens a connection and returns its two ends. The program's end is a
// blocking descriptor. If network is "two pairs", there is one socket for each
// direction: the program reads from programEnd and writes to out. Otherwise out
// is nil.
func connect(t *testing.T, network string) (client net.Conn, programEnd, out *os.File) {
	t.Helper()
	pair := func() (net.Conn, *os.File) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		harness.Must(t, err)
		f := os.NewFile(uintptr(fds[0]), "client")
		defer f.Close()
		c, err := net.FileConn(f)
		harness.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c, os.NewFile(uintptr(fds[1]), "theirs")
	}
	switch network {
	case "pair":
		client, programEnd = pair()
	case "two pairs":
		var in net.Conn
		in, programEnd = pair()
		client, out = pair()
		client = pairConn{client, in}
	default:
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(sockettest.Dir(t), "s")
		}
		ln, err := net.Listen(network, address)
		harness.Must(t, err)
		defer ln.Close()
		client, err = net.Dial(network, ln.Addr().String())
		harness.Must(t, err)
		t.Cleanup(func() { client.Close() })
		accepted, err := ln.Accept()
		harness.Must(t, err)
		defer accepted.Close()
		programEnd, err = accepted.(interface{ File() (*os.File, error) }).File()
		harness.Must(t, err)
		harness.Must(t, unix.SetNonblock(int(fdOf(t, programEnd)), false))
	}
	return client, programEnd, out
}

// TestInetdLocal checks that rest_auth/local accepts the owner of a file on
// standard input. It must do so only if no other user may write to the file,
// and no user outside the file's group may read it.
func TestInetdLocal(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	in := filepath.Join(l.Dir, "request")
	harness.Must(t, os.WriteFile(in, []byte("GET http://localhost/sched/v0.0.43/ping HTTP/1.1\n\n"), 0o600))
	for _, tt := range []struct {
		name   string
		owner  harness.Account
		mode   os.FileMode
		status int
	}{
		{"own file", u, 0o600, 200},
		{"own file that its group may read", u, 0o640, 200},
		{"own file that its group may write", u, 0o660, 401},
		{"own file that others may read", u, 0o604, 401},
		{"another's file", harness.Account{UID: u.UID + 1, GID: u.GID}, 0o600, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Geteuid() == 0 {
				harness.Must(t, os.Chown(in, int(tt.owner.UID), int(tt.owner.GID)))
			} else if tt.owner != u {
				harness.NeedRoot(t)
			}
			harness.Must(t, os.Chmod(in, tt.mode))
			f, err := os.Open(in)
			harness.Must(t, err)
			defer f.Close()
			cmd := l.InetdCommand()
			if os.Geteuid() == 0 {
				cmd = l.InetdCommand("-u", u.Name, "-g", strconv.Itoa(int(u.GID)))
			}
			cmd.Stdin = f
			out, log, status := harness.RunCommand(t, cmd)
			got := harness.ParseAnswers(t, out)
			if status != exitStatus(got) || harness.Statuses(got) != fmt.Sprint([]int{tt.status}) {
				t.Errorf("%s, exit status %d\n%s", harness.Statuses(got), status, log)
			}
		})
	}
}

// localLab starts the daemons, and listens on a UNIX socket to which all users
// may connect.
func localLab(t *testing.T) (l *harness.Lab, ln net.Listener, path string) {
	t.Helper()
	l = harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	path = filepath.Join(harness.SocketDir(t, l), "s")
	ln, err := net.Listen("unix", path)
	harness.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	harness.Must(t, os.Chmod(path, 0o666))
	return l, ln, path
}

// runAs starts the gateway in inetd mode with the connection of a client with
// the given ids, sends a ping, and returns the answer, the log and the exit
// status.
func runAs(t *testing.T, l *harness.Lab, ln net.Listener, path string, uid, gid uint32, security string) (answer, logged string, status int) {
	t.Helper()
	client, err := thread.DialAs(uid, gid, path)
	harness.Must(t, err)
	defer client.Close()
	accepted, err := ln.Accept()
	harness.Must(t, err)
	f, err := accepted.(*net.UnixConn).File()
	harness.Must(t, err)
	accepted.Close()
	cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-f", l.Conf(), "-a", "rest_auth/local", "-v")
	cmd.Env = append(os.Environ(), "SCHEDRESTD_SECURITY="+security)
	var log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, &log
	harness.Must(t, cmd.Start())
	f.Close()
	fmt.Fprint(client, "GET http://localhost/sched/v0.0.43/ping HTTP/1.1\r\n\r\n")
	client.(*net.UnixConn).CloseWrite()
	text, _ := io.ReadAll(client) // if the gateway has not read the request, the kernel resets the connection
	cmd.Wait()
	return string(text), log.String(), cmd.ProcessState.ExitCode()
}

// TestInetdBecomesUser checks that with become_user the worker runs as the user
// who has connected to the UNIX socket.
func TestInetdBecomesUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l, ln, path := localLab(t)
	out, log, status := runAs(t, l, ln, path, u.UID, u.GID, "become_user")
	if got := harness.ParseAnswers(t, out); status != 0 || harness.Statuses(got) != "[200]" || got[0].Get("meta", "client", "user") != u.Name {
		t.Errorf("exit status %d: %s\n%s", status, out, log)
	}
	if want := fmt.Sprintf("worker_uid=%d", u.UID); !strings.Contains(log, want) {
		t.Errorf("no %s in the log:\n%s", want, log)
	}
	cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-f", l.Conf(), "-a", "rest_auth/local")
	cmd.Env = append(os.Environ(), "SCHEDRESTD_SECURITY=become_user")
	cmd.Stdin = strings.NewReader("")
	if _, log, status := harness.RunCommand(t, cmd); status != 1 || !strings.Contains(log, "UNIX socket") {
		t.Errorf("with a pipe: exit status %d\n%s", status, log)
	}
	// Here the gateway's standard input is the client's end of the connection.
	// For this end the kernel reports the owner of the listening service, who
	// is not a client.
	clientEnd, err := thread.DialAs(0, 0, path)
	harness.Must(t, err)
	defer clientEnd.Close()
	f, err := clientEnd.(*net.UnixConn).File()
	harness.Must(t, err)
	defer f.Close()
	cmd = exec.Command(filepath.Join(harness.Bin, "schedrestd"), "-f", l.Conf(), "-a", "rest_auth/local")
	cmd.Env = append(os.Environ(), "SCHEDRESTD_SECURITY=become_user")
	cmd.Stdin, cmd.Stdout = f, f
	if _, log, status := harness.RunCommand(t, cmd); status != 1 || !strings.Contains(log, "accepted") {
		t.Errorf("with the end that opened the connection: exit status %d\n%s", status, log)
	}
}

// TestRefusedUsers checks which clients become_user refuses. A gateway that
// listens must refuse the same clients as one in inetd mode, and log the same
// reason.
func TestRefusedUsers(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	u := harness.OrdinaryUser(t)
	l, ln, path := localLab(t)
	because := regexp.MustCompile(`msg="connection refused" .* because=("[^"]*")`)
	for i, security := range []string{"become_user", "become_user,disable_user_check"} {
		listening := filepath.Join(harness.SocketDir(t, l), fmt.Sprint("listening", i))
		g := l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=" + security}, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+listening)
		var want []string // the reasons of the gateway that listens
		reasons := func() (list []string) {
			for _, m := range because.FindAllStringSubmatch(g.Logged(), -1) {
				list = append(list, m[1])
			}
			return list
		}
		for _, ids := range [][2]uint32{{0, 0}, {0, u.GID}, {u.UID, 0}, {65534, 65534}, {u.UID, 65534}, {u.UID, u.GID}} {
			c, err := thread.DialAs(ids[0], ids[1], listening)
			harness.Must(t, err)
			_, _ = io.WriteString(c, "GET /sched/v0.0.43/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") // a refused client is answered before
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			harness.Must(t, err)
			c.Close()
			reason := ""
			if answer.StatusCode == http.StatusForbidden {
				harness.Eventually(t, "the refusal is in the log", func() bool { return len(reasons()) > len(want) })
				want = reasons()
				reason = want[len(want)-1]
			}
			out, log, status := runAs(t, l, ln, path, ids[0], ids[1], security)
			inetdReason := ""
			if m := because.FindStringSubmatch(log); m != nil {
				inetdReason = m[1]
			}
			t.Logf("%s, %v: %d %s", security, ids, answer.StatusCode, reason)
			if got := harness.ParseAnswers(t, out); status != 0 || harness.Statuses(got) != fmt.Sprint([]int{answer.StatusCode}) || inetdReason != reason {
				t.Errorf("%s, %v: a listening gateway answers %d (%s), one in inetd mode %s (%s), exit status %d\n%s",
					security, ids, answer.StatusCode, reason, harness.Statuses(got), inetdReason, status, log)
			}
		}
	}
}
