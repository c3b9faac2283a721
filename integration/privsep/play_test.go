package privsep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	program "schedrestd/gateway/worker"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/keys"
	"schedrestd/handlers/rest"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/privsep/spawn"
)

func init() {
	if os.Args[0] == spawn.WorkerName {
		program.Rename()
	}
}

// playWorker runs a worker: the real one with a handler for tests, or a
// compromised one.
func playWorker(part string) int {
	switch part {
	case "good", "survives and serves":
		return program.Main(goodHandler)
	case "has an extra descriptor": // has an open descriptor that the parent does not know about
		if _, err := os.Open("/etc/passwd"); err != nil {
			return 9
		}
		return program.Main(goodHandler)
	case "can't build its handlers":
		return program.Main(func(work.Setup, *keys.Keys, *broker.Broker) (program.Handler, error) {
			return nil, fmt.Errorf("no\x1bhandlers")
		})
	case "intruder":
		return playIntruder(os.Args[2])
	case "sends nothing":
		time.Sleep(time.Hour)
	case "first keeps its idle connection":
		if !markExisted() {
			return playHostile("keeps its idle connection")
		}
		return program.Main(goodHandler)
	case "one keeps its idle connection":
		if os.Getuid() == 31001 {
			return playHostile("keeps its idle connection")
		}
		return program.Main(goodHandler)
	case "does not exit", "never reports closed", "first reports closed at once", "first never reports closed":
		if part == "does not exit" || part == "never reports closed" || !markExisted() {
			return playStubborn(part)
		}
		return program.Main(goodHandler)
	case "first sets SO_LINGER":
		if !markExisted() {
			return playHostile("sets SO_LINGER")
		}
		return program.Main(goodHandler)
	case "first stops": // the first worker stops, the others serve
		if !markExisted() {
			return playHostile("stopped")
		}
		return program.Main(goodHandler)
	case "crash":
		panic("no worker here")
	}
	return playHostile(part)
}

// refusedCluster is a cluster name that makes workers refuse to serve.
const refusedCluster = "refused"

// workerStartedMsg is the message of the log record in which a worker logs its
// token. The worker answers requests for its pid with this token (see pidOf).
const workerStartedMsg = "a worker is here"

// played is a handler for tests, which refuses requests as the real one does.
type played struct {
	*rest.Server
	mux *http.ServeMux
}

func (p played) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

func goodHandler(s work.Setup, tokens *keys.Keys, b *broker.Broker) (program.Handler, error) {
	if s.Cluster == refusedCluster {
		return nil, fmt.Errorf("not for this cluster")
	}
	// A process in a PID namespace does not know its pid outside the namespace.
	// The dispatcher adds that pid to the log records of the process.
	pid := strconv.FormatUint(rand.Uint64()>>1, 10)
	slog.Info(workerStartedMsg, "token", pid)
	mux := http.NewServeMux()
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, pid) })
	mux.HandleFunc("/setup", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(s) })
	mux.HandleFunc("/name", nameHandler(b))
	mux.HandleFunc("/verdict", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, verdict(r, tokens.Authenticator())) })
	mux.HandleFunc("/peer", func(w http.ResponseWriter, r *http.Request) {
		p, _ := auth.PeerFrom(r.Context())
		json.NewEncoder(w).Encode(p)
	})
	mux.HandleFunc("/environ", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(os.Environ(), " ")) })
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.FormValue("ms"))
		slog.Info("a request waits")
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, "waited")
	})
	mux.HandleFunc("/log", func(_ http.ResponseWriter, r *http.Request) { slog.Warn(r.FormValue("text"), "n", 1) })
	mux.HandleFunc("/hold", func(w http.ResponseWriter, r *http.Request) { holdSecret(r); fmt.Fprint(w, pid) })
	mux.HandleFunc("/raw", func(_ http.ResponseWriter, r *http.Request) { fmt.Fprint(os.Stderr, r.FormValue("text")) })
	mux.HandleFunc("/flood", func(http.ResponseWriter, *http.Request) {
		line := strings.Repeat("x", 50) + "\n"
		for range 20_000 {
			os.Stderr.WriteString(line)
		}
	})
	mux.HandleFunc("/keep", func(w http.ResponseWriter, _ *http.Request) { // keeps the connection permanently
		fmt.Fprint(w, "kept")
		_ = http.NewResponseController(w).Flush()
		select {}
	})
	mux.HandleFunc("/attack", capture)
	mux.HandleFunc("/connects", connects)
	mux.HandleFunc("/says", handleServiceAttack)
	mux.HandleFunc("/stamp", stampHandler(s, tokens, b))
	mux.HandleFunc("/stamps", handleStampAttack)
	mux.HandleFunc("/greed", overuse)
	mux.HandleFunc("/write", func(w http.ResponseWriter, _ *http.Request) {
		err := os.WriteFile("/dev/shm/schedrestd-test", []byte("x"), 0o600)
		fmt.Fprint(w, err)
	})
	return played{rest.NewServer(rest.Service{}, rest.Config{Cluster: s.Cluster, SendLength: s.Inetd, Log: slog.Default()}), mux}, nil
}

// playHostile sends Ready without confining itself, as an attacker's code in a
// worker would. Then it breaks the protocol in the way that part names.
func playHostile(part string) int {
	c, err := ipc.Open(ipc.WorkerFD, ipc.Worker, ipc.Managers)
	if err != nil {
		return 9
	}
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return 9
		}
	}
	if part == "early" {
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 0)
	}
	if err := c.Send(new(ipc.Ready)); err != nil {
		return 9
	}
	if err := c.Send(&ipc.KeysResult{OK: true}); err != nil {
		return 9
	}
	switch part {
	case "intent to the dispatcher":
		sendRaw(ipc.KindOf(new(query.Intent)), 40, 0)
	case "unknown kind":
		sendRaw(99, 0, 0)
	case "dial of an unconfigured daemon": // controller 0, which the configuration does not have
		sendRaw(ipc.KindOf(new(work.Dial)), 12, 0)
	case "a dispatcher's message":
		sendRaw(ipc.KindOf(new(work.Drain)), 0, 0)
	case "ready twice":
		sendRaw(ipc.KindOf(new(ipc.Ready)), 0, 0)
	case "closed, unknown connection":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 0)
	case "verify":
		sendRaw(ipc.KindOf(new(query.Verify)), 42, 0)
	case "verified":
		sendRaw(ipc.KindOf(new(query.Verified)), 9, 0)
	case "public keys":
		sendRaw(ipc.KindOf(new(work.Keys)), 6, 3)
	case "secret keys":
		sendRaw(ipc.KindOf(new(ipc.SecretKeys)), 4, 4)
	case "trailing bytes":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 9, 0)
	case "oversized":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 60_000, 0)
	case "descriptor":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 1)
	case "descriptors":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 100)
	case "unrequested pong":
		for range 1000 {
			sendRaw(ipc.KindOf(new(ipc.Pong)), 8, 0)
		}
	case "progress, unknown connection":
		if err := c.Send(&work.Progress{ID: 1, Stage: work.Idle}); err != nil {
			return 9
		}
	case "invalid stage":
		sendRaw(ipc.KindOf(new(work.Progress)), 9, 0)
	case "stopped":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	default:
		playIdle(part, c)
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return 0
		}
		if s, ok := m.Message.(*work.ServiceChannel); ok && s.Service == ipc.Auditor {
			if auditor, err = ipc.Open(m.FDs[0], ipc.Worker, ipc.Auditor); err != nil {
				return 9
			}
			playUnasked(part, m.FDs[0])
		}
		conn, ok := m.Message.(*ipc.Connection)
		if !ok {
			continue
		}
		switch part {
		case "intent of another", "intent twice", "endless intents", "outcome before permission", "outcome twice", "intent, then killed", "outcome with forged text":
			playAudit(part, c, conn.ID)
		case "closed before taken":
			c.Send(&work.ConnectionDone{ID: conn.ID})
		case "taken twice":
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			c.Send(&work.ConnectionTaken{ID: conn.ID})
		case "closed twice":
			unix.Close(m.FDs[0])
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			for range 2 {
				c.Send(&work.ConnectionDone{ID: conn.ID})
			}
		case "progress before taken":
			c.Send(&work.Progress{ID: conn.ID, Stage: work.Idle})
		case "progress of another":
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			c.Send(&work.Progress{ID: conn.ID + 1, Stage: work.Idle})
		case "progress twice":
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			for range 2 {
				c.Send(&work.Progress{ID: conn.ID, Stage: work.Idle})
			}
		case "progress after closed":
			unix.Close(m.FDs[0])
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			c.Send(&work.ConnectionDone{ID: conn.ID})
			c.Send(&work.Progress{ID: conn.ID, Stage: work.Idle})
		case "endless progress":
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			go func() { // otherwise it could be killed because it does not read its channel
				for {
					switch m, err := c.Receive(); msg := m.Message.(type) {
					case *ipc.Ping:
						c.Send(&ipc.Pong{Number: msg.Number})
					default:
						if err != nil {
							return
						}
					}
				}
			}()
			for {
				for _, stage := range []work.Stage{work.Idle, work.Waiting} {
					if c.Send(&work.Progress{ID: conn.ID, Stage: stage}) != nil {
						return 0
					}
				}
			}
		case "keeps its idle connection": // reports that its connection is idle, but does not close it
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			c.Send(&work.Progress{ID: conn.ID, Stage: work.Idle})
		case "closed, connection of another":
			c.Send(&work.ConnectionDone{ID: conn.ID + 1})
		case "sets SO_LINGER": // lets the dispatcher close the socket last
			if fillBuffer(m.FDs[0]) != nil || setLinger(m.FDs[0]) != nil {
				return 9
			}
			unix.Close(m.FDs[0])
			c.Send(&work.ConnectionTaken{ID: conn.ID})
			return 3
		default:
			playPenalty(part, c, m.FDs[0], conn.ID)
		}
	}
}

// sendRaw sends a frame without package ipc, which would refuse the frame.
func sendRaw(kind ipc.Kind, size, fds int) { sendRawTo(ipc.WorkerFD, kind, size, fds) }

func sendRawTo(fd int, kind ipc.Kind, size, fds int) {
	frame := append([]byte{byte(kind)}, make([]byte, size)...)
	var oob []byte
	if fds > 0 {
		list := make([]int, fds)
		for i := range list {
			list[i] = 2
		}
		oob = unix.UnixRights(list...)
	}
	if err := unix.Sendmsg(fd, frame, oob, nil, 0); err != nil {
		fmt.Fprintln(os.Stderr, "sendmsg:", err)
	}
}

// processNumber returns the number of processes that have called it so far. It
// creates a file for each of them. The names of these files begin with the
// program's second argument.
func processNumber() int {
	for n := 1; ; n++ {
		f, err := os.OpenFile(os.Args[2]+strconv.Itoa(n), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			return n
		}
		if !errors.Is(err, fs.ErrExist) {
			panic(err)
		}
	}
}

// markExisted creates the file that the program's second argument names, and
// reports whether the file existed before.
func markExisted() bool {
	f, err := os.OpenFile(os.Args[2], os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrExist)
}
