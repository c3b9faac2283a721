package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/site"
)

var passes = &comparison{title: fmt.Sprintf("floor of passing connections, median of paired rounds, %d clients", clients), columns: []string{"three processes", "one process"}}

// BenchmarkPassTwice measures what it costs to pass each connection through two
// processes, as the parent and the dispatcher do. The processes do nothing
// else: the last one reads a request, writes a constant answer, and closes the
// connection. So the result is a floor for the gateway.
func BenchmarkPassTwice(b *testing.B) {
	l := theLab.open(b)
	three, one := l.startPass(b, passAccept), l.startPass(b, passAlone)
	compare(b, passes, "constant answer, a new connection per request", []server{three, one}, load{request: get("/"), count: 2000})
}

// passEnv names an environment variable with the role of a process of
// BenchmarkPassTwice. Passed connections arrive on the descriptor passIn.
const (
	passEnv = "SCHEDRESTD_BENCH_PASS"
	passIn  = 3

	passAlone   = "alone"   // accepts and answers
	passAccept  = "accept"  // accepts and passes on
	passForward = "forward" // receives and passes on
	passAnswer  = "answer"  // receives and answers
)

// startPass starts a process that listens.
func (l *lab) startPass(b *testing.B, role string) server {
	b.Helper()
	ports, err := site.FreePorts(1)
	must(b, err)
	self, err := os.Executable()
	must(b, err)
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	d := l.start(b, site.Part{Address: "http://" + address, Check: func(context.Context) error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	}, Program: site.Program{Name: role, Path: self, Env: []string{passEnv + "=" + role, passEnv + "_ADDRESS=" + address}, Log: filepath.Join(l.Dir, "pass-"+role)}})
	b.Cleanup(func() { _ = d.Stop() })
	return newServer(b, d, tcpDialer(address))
}

// servePassed runs a process of BenchmarkPassTwice until its input ends.
func servePassed(role string) {
	err := func() error {
		if role == passAnswer {
			return eachConn(passIn, receiveConn, answerConstant)
		}
		in, get := passIn, receiveConn
		if role != passForward {
			l, err := net.Listen("tcp", os.Getenv(passEnv+"_ADDRESS"))
			if err != nil {
				return err
			}
			file, err := l.(*net.TCPListener).File()
			if err != nil {
				return err
			}
			if in, err = unix.Dup(int(file.Fd())); err != nil {
				return err
			}
			get = acceptConn
		}
		if role == passAlone {
			return eachConn(in, get, answerConstant)
		}
		runtime.GOMAXPROCS(1) // like the gateway's parent and dispatcher
		out, err := startNext(map[string]string{passAccept: passForward, passForward: passAnswer}[role])
		if err != nil {
			return err
		}
		return eachConn(in, get, passTo(out))
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// startNext starts the process that connections are passed to, and returns a
// descriptor for passing them.
func startNext(role string) (int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	self, err := os.Executable()
	if err != nil {
		return -1, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "theirs")
	defer theirs.Close()
	cmd := exec.Command(self)
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = []string{passEnv + "=" + role}, []*os.File{theirs}, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return fds[0], cmd.Start()
}

// eachConn calls do for each connection that get returns, until get fails.
func eachConn(in int, get func(fd int) (int, error), do func(fd int)) error {
	if err := unix.SetNonblock(in, true); err != nil { // package os/exec has made it blocking
		return err
	}
	raw, err := os.NewFile(uintptr(in), "in").SyscallConn()
	for err == nil {
		var fd int
		var getErr error
		err = raw.Read(func(s uintptr) bool {
			fd, getErr = get(int(s))
			return getErr != unix.EAGAIN
		})
		if err = errors.Join(err, getErr); err == nil {
			do(fd)
		}
	}
	return err
}

func acceptConn(s int) (int, error) {
	fd, _, err := unix.Accept4(s, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return fd, err
}

func receiveConn(s int) (int, error) {
	var frame [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(s, frame[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return -1, err
	}
	if n == 0 {
		return -1, io.EOF
	}
	list, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(list) != 1 {
		return -1, errors.Join(err, errors.New("no descriptor"))
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// passTo returns a function that passes a connection to another process.
func passTo(next int) func(fd int) {
	return func(fd int) {
		for unix.Sendmsg(next, []byte{1}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL) == unix.EAGAIN {
			runtime.Gosched()
		}
		unix.Close(fd)
	}
}

// answerConstant answers one request.
func answerConstant(fd int) {
	go func() {
		c := os.NewFile(uintptr(fd), "connection")
		defer c.Close()
		if _, err := c.Read(make([]byte, 4<<10)); err == nil {
			_, _ = c.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		}
	}()
}
