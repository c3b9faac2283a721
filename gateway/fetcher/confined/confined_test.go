package confined

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/conf"
	"schedrestd/gateway/fetcher"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/confserver/confservertest"
	"schedrestd/rpc/tlsconn/tlstest"
	"schedrestd/security/sandbox/sandboxtest"
)

// TestMain lets the test binary serve as the process that fetches, or as one that
// an attacker has captured.
func TestMain(m *testing.M) {
	if !Requested(os.Args) {
		os.Exit(m.Run())
	}
	if len(os.Args) > 1 {
		os.Exit(Run(captured[os.Args[1]]))
	}
	os.Exit(Main())
}

const text = "ClusterName=c\nSlurmctldHost=h(127.0.0.1)\n# \xe9\n"

// serve starts a controller that sends text. It returns the controller's address.
func serve(t *testing.T, ln net.Listener) string {
	return serveFiles(t, ln, model.ConfigFile{Name: "slurm.conf", Text: text, Exists: true}, model.ConfigFile{Name: "nodes.conf", Exists: true}, model.ConfigFile{Name: "oci.conf"})
}

func serveFiles(t *testing.T, ln net.Listener, files ...model.ConfigFile) string {
	t.Helper()
	confservertest.Serve(t, ln, 0, confservertest.Send(files...))
	return confservertest.Address(ln)
}

// options returns the options for fetching with this program, and the log.
func options(t *testing.T) (fetcher.Options, *bytes.Buffer) {
	t.Helper()
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	log := new(bytes.Buffer)
	return fetcher.Options{Program: program, Log: slog.New(slog.NewTextHandler(log, nil))}, log
}

// prepare returns the task of fetching from servers.
func prepare(t *testing.T, servers, token string) (confserver.Task, error) {
	t.Helper()
	list, err := confserver.Parse(servers)
	if err != nil {
		t.Fatal(err)
	}
	return confserver.Prepare(confserver.Options{Servers: list, Token: token, Munge: "/nowhere/munge", Sack: []string{"/nowhere/sack"}, Log: slog.New(slog.DiscardHandler)})
}

// fetchFrom has another process fetch the configuration.
func fetchFrom(t *testing.T, limit time.Duration, servers string, o fetcher.Options) (conf.Sent, error) {
	t.Helper()
	task, err := prepare(t, servers, confservertest.Token)
	if err != nil {
		t.Fatal(err)
	}
	return fetcher.Fetch(limit, task, o)
}

// patience is the limit for requests that should not reach their limit.
const patience = time.Minute

// TestFetch fetches the configuration over each kind of connection, and checks
// that the errors are those of package confserver.
func TestFetch(t *testing.T) {
	sandboxtest.Need(t)
	ca := tlstest.NewCA(t)
	overTCP, overUnix := serve(t, confservertest.Listen(t, "tcp")), serve(t, confservertest.Listen(t, "unix"))
	overTLS := serve(t, tls.NewListener(confservertest.Listen(t, "tcp"), &tls.Config{Certificates: []tls.Certificate{ca.Issue(t)}}))
	gone := confservertest.Listen(t, "tcp")
	gone.Close()
	want := map[string]string{"slurm.conf": text, "nodes.conf": ""}
	for _, tt := range []struct {
		name, servers, token string
		ca                   []byte
		from                 string
		kind                 errs.Kind
		text, hint           string
	}{
		{name: "TCP", servers: overTCP, token: confservertest.Token, from: overTCP},
		{name: "UNIX", servers: overUnix, from: overUnix},
		{name: "TLS", servers: overTLS, token: confservertest.Token, ca: ca.PEM(), from: overTLS},
		{name: "TLS of another CA", servers: overTLS, token: confservertest.Token, ca: tlstest.NewCA(t).PEM(), kind: errs.Unavailable, text: "TLS handshake"},
		{name: "the second", servers: confservertest.Address(gone) + "," + overTCP, token: confservertest.Token, from: overTCP},
		{name: "refused", servers: overTCP, token: "x.y.z", kind: errs.Unauthenticated, text: overTCP, hint: "SCHEDRESTD_CONF_TOKEN"},
		{name: "gone", servers: confservertest.Address(gone), token: confservertest.Token, kind: errs.Unavailable, text: "connection refused", hint: "SCHEDRESTD_CONF_CA"},
		{name: "no credential", servers: overTCP, kind: errs.Unavailable, text: "neither munged nor sackd", hint: "start munged"},
		{name: "no CA", servers: overTLS, token: confservertest.Token, ca: []byte("x"), kind: errs.Invalid, text: "/ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, log := options(t)
			if o.CA = tt.ca; tt.ca != nil {
				o.CAFile = "/ca.pem"
			}
			task, err := prepare(t, tt.servers, tt.token)
			var sent conf.Sent
			if err == nil {
				sent, err = fetcher.Fetch(patience, task, o)
			}
			if tt.from != "" {
				if diff := cmp.Diff(conf.Sent{Origin: tt.from, Files: want}, sent); err != nil || diff != "" || log.Len() > 0 {
					t.Errorf("%v\n%s%s", err, diff, log)
				}
				return
			}
			if errs.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("kind %v: %v (%s)", errs.KindOf(err), err, errs.HintOf(err))
			}
		})
	}
}

// TestLongAnswer checks that the longest answer fits into the memory that the
// process may use.
func TestLongAnswer(t *testing.T) {
	sandboxtest.Need(t)
	long := strings.Repeat("#0123456789abcdef\n", 15<<20/18)
	o, log := options(t)
	sent, err := fetchFrom(t, patience, serveFiles(t, confservertest.Listen(t, "unix"), model.ConfigFile{Name: "slurm.conf", Text: long, Exists: true}), o)
	if err != nil || sent.Files["slurm.conf"] != long || log.Len() > 0 {
		t.Errorf("%d bytes, %v\n%s", len(sent.Files["slurm.conf"]), err, log)
	}
}

// TestServer checks that nothing is sent to a server on this machine whose user is
// not trusted. The process can't ask the kernel for the user of a TCP port.
func TestServer(t *testing.T) {
	sandboxtest.Need(t)
	for _, network := range []string{"tcp", "unix"} {
		o, _ := options(t)
		task, err := prepare(t, serve(t, confservertest.Listen(t, network)), confservertest.Token)
		if err != nil {
			t.Fatal(err)
		}
		task.Endpoints[0].Trusted = []uint32{1 << 30}
		sent, err := fetcher.Fetch(patience, task, o)
		if want := fmt.Sprintf("is served by uid %d", os.Geteuid()); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", network, sent, err)
		}
	}
}

// TestHostileController checks that no answer of a controller causes anything but
// an error, and that the error is not logged as a crash.
func TestHostileController(t *testing.T) {
	sandboxtest.Need(t)
	for _, tt := range []struct {
		name   string
		answer func(io.Writer)
		limit  time.Duration
		kind   errs.Kind
	}{
		{"closes", func(io.Writer) {}, patience, errs.Unauthenticated},
		{"stalls", func(io.Writer) { select {} }, time.Second, errs.Timeout},
		{"stalls within the answer", func(w io.Writer) { w.Write([]byte{0, 0, 1, 0, 1}); select {} }, time.Second, errs.Timeout},
		{"garbage", func(w io.Writer) { fmt.Fprint(w, "HTTP/1.1 400 Bad Request\r\n\r\n") }, patience, errs.Unsupported},
		{"zeros", func(w io.Writer) { w.Write(make([]byte, 1<<16)) }, patience, errs.BadAnswer},
		{"a GiB", func(w io.Writer) {
			w.Write(binary.BigEndian.AppendUint32(nil, 1<<30))
			for piece := make([]byte, 1<<20); ; {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}, patience, errs.BadAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ln := confservertest.Listen(t, "tcp")
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						c.Read(make([]byte, 4096))
						tt.answer(c)
					}()
				}
			}()
			o, log := options(t)
			sent, err := fetchFrom(t, tt.limit, confservertest.Address(ln), o)
			if err == nil || errs.KindOf(err) != tt.kind || log.Len() > 0 {
				t.Errorf("%v; kind %v: %v\n%s", sent, errs.KindOf(err), err, log)
			}
		})
	}
}

// captured are the actions of a process that an attacker has captured.
var captured = map[string]func(fetcher.Task) (conf.Sent, error){
	"panic": func(fetcher.Task) (conf.Sent, error) { panic("decoding \x1b[2J") },
	"exit": func(fetcher.Task) (conf.Sent, error) {
		os.Exit(3)
		return conf.Sent{}, nil
	},
	"stall": func(fetcher.Task) (conf.Sent, error) {
		time.Sleep(time.Hour)
		return conf.Sent{}, nil
	},
	"forbidden call": func(fetcher.Task) (conf.Sent, error) {
		_, _, _ = unix.RawSyscall(unix.SYS_SETNS, 0, 0, 0)
		return conf.Sent{}, nil
	},
	"garbage": func(fetcher.Task) (conf.Sent, error) {
		os.Stdout.WriteString("{}")
		return conf.Sent{}, nil
	},
	"no result": func(fetcher.Task) (conf.Sent, error) {
		os.Exit(0)
		return conf.Sent{}, nil
	},
	"half a result": func(fetcher.Task) (conf.Sent, error) {
		os.Stdout.WriteString("4:sent,9999:")
		os.Exit(0)
		return conf.Sent{}, nil
	},
	"endless result": func(fetcher.Task) (conf.Sent, error) {
		for piece := make([]byte, 1<<20); ; {
			if _, err := os.Stdout.Write(piece); err != nil {
				time.Sleep(time.Hour)
			}
		}
	},
	"endless log": func(t fetcher.Task) (conf.Sent, error) {
		for range 1 << 16 {
			os.Stderr.WriteString("\x1b[2J error: root\n")
		}
		return conf.Sent{}, errs.New(errs.Invalid, "logged")
	},
	"memory": func(fetcher.Task) (conf.Sent, error) {
		var list [][]byte
		for range 1 << 10 {
			piece := make([]byte, 1<<20)
			for i := range piece {
				piece[i] = 1
			}
			list = append(list, piece)
		}
		return conf.Sent{}, fmt.Errorf("has %d MiB", len(list))
	},
	"other controller": func(fetcher.Task) (conf.Sent, error) {
		return conf.Sent{Origin: "ctl:1", Files: map[string]string{"slurm.conf": text}}, nil
	},
	"many files": func(t fetcher.Task) (conf.Sent, error) {
		sent := conf.Sent{Origin: t.Endpoints[0].Name, Files: map[string]string{"slurm.conf": text}}
		for i := range 1500 {
			sent.Files[fmt.Sprint(i)] = ""
		}
		return sent, nil
	},
	"terminal": func(fetcher.Task) (conf.Sent, error) {
		return conf.Sent{}, errs.New(errs.Invalid, "one\ntwo\x1b[2J").WithHint("\x1b[2J")
	},
	"no endpoint": func(t fetcher.Task) (conf.Sent, error) {
		_, err := (&dialer{task: &t}).dial(context.Background(), 0xffff)
		return conf.Sent{}, err
	},
	"no request": func(t fetcher.Task) (conf.Sent, error) {
		unix.Write(channelFD, make([]byte, 3))
		_, _, err := receive()
		return conf.Sent{}, err
	},
	"many connections": func(t fetcher.Task) (conf.Sent, error) {
		d := dialer{task: &t}
		for i := 0; ; i++ {
			nc, err := d.dial(context.Background(), 0)
			if err != nil {
				return conf.Sent{}, fmt.Errorf("after %d connections: %w", i, err)
			}
			nc.Close()
		}
	},
}

// TestCapturedProcess checks that schedrestd-config survives everything that a
// captured process can do, and gets an error that says what happened.
func TestCapturedProcess(t *testing.T) {
	sandboxtest.Need(t)
	address := serve(t, confservertest.Listen(t, "unix"))
	for _, tt := range []struct {
		name string
		kind errs.Kind
		text string
		log  string // "": none
	}{
		{"panic", errs.BadAnswer, "schedrestd-fetch: exit status 2", `panic: decoding \\x1b[2J`},
		{"exit", errs.BadAnswer, "schedrestd-fetch: exit status 3", ""},
		{"stall", errs.Timeout, "not finished within 1s", ""},
		{"forbidden call", errs.BadAnswer, "killed by signal 31 (bad system call)", ""},
		{"garbage", errs.BadAnswer, "another form", ""},
		{"no result", errs.BadAnswer, "another form", ""},
		{"half a result", errs.BadAnswer, "another form", ""},
		{"endless result", errs.BadAnswer, "has written more than 33554432 bytes", ""},
		{"endless log", errs.Invalid, "logged", `\\x1b[2J error: root\\n`},
		{"memory", errs.BadAnswer, "schedrestd-fetch: exit status 2", "out of memory"},
		{"other controller", errs.BadAnswer, "names another controller: ctl:1", ""},
		{"many files", errs.BadAnswer, "1501 files", ""},
		{"terminal", errs.Invalid, "one\ntwo\\x1b[2J", ""},
		{"no endpoint", errs.Internal, "receive a connection", ""},
		{"no request", errs.Internal, "EOF", ""},
		{"many connections", errs.Internal, "after 1000 connections", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, log := options(t)
			o.Argv = []string{tt.name}
			limit := patience
			if tt.kind == errs.Timeout {
				limit = time.Second
			}
			sent, err := fetchFrom(t, limit, address, o)
			if err == nil || errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error()+errs.HintOf(err)+log.String(), "\x1b") {
				t.Errorf("%v; kind %v: %q", sent, errs.KindOf(err), err)
			}
			if got := log.String(); (tt.log == "") != (got == "") || !strings.Contains(got, tt.log) || len(got) > 8<<10 {
				t.Errorf("log of %d bytes: %.300q", len(got), got)
			}
		})
	}
}
