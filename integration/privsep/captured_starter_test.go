package privsep

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	own "schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/rpc/payload"
	"schedrestd/security/sandbox"
)

// The numbers under which the keeper of these tests vouches for a user: for a process
// that gets credentials, and for one that reads output. The last one stands for nobody.
const (
	forCredentials = 1<<40 + 1
	forOutput      = 1 << 41
	forNobody      = 1<<42 + 1
)

// asking is a keeper that vouches for a user, and asks each process of this user for a
// credential. It sees what an honest keeper gets if the dispatcher is captured.
type asking struct{ dispatcher *ipc.Channel }

const (
	asksProcesses = "asks the processes of users"
	keeperHears   = "heard"
)

func playAsking() int {
	return own.Main(ipc.Keeper, func(ipc.ServiceSetup) (sandbox.Layers, error) { return sandbox.Layers{}, nil },
		func(dispatcher *ipc.Channel) own.Service { return asking{dispatcher} })
}

func (a asking) Handle(m ipc.Received) (bool, error) {
	switch m.Message.(type) {
	case *ipc.SecretKeys:
		return true, a.dispatcher.Send(&ipc.KeysResult{OK: true, Token: true})
	case *ipc.KeeperChannels:
		channel, err := ipc.Open(m.FDs[0], ipc.Keeper, ipc.Acceptor)
		if err == nil {
			go a.follow(channel)
		}
		return true, err
	}
	return false, nil
}

func (a asking) follow(parent *ipc.Channel) {
	for _, number := range []uint64{forCredentials, forOutput} {
		_ = parent.Send(&ipc.Vouch{Client: number, UID: ordinaryUID, GID: ordinaryUID})
	}
	for {
		m, err := parent.Receive()
		if err != nil {
			return
		}
		if k, ok := m.Message.(*ipc.KeeperChannel); ok {
			go func() { slog.Info(keeperHears, "for", k.Client, "answer", askCredential(m.FDs[0])) }()
		}
	}
}

// askCredential asks a process for a credential, and describes the answer.
func askCredential(fd int) string {
	process, err := ipc.Open(fd, ipc.Keeper, ipc.Credential)
	if err != nil {
		return err.Error()
	}
	q := &query.GetCredential{ID: 7}
	copy(q.Payload[:], payload.Of(readNodes, nil))
	err = process.Send(q)
	if err != nil && !errors.Is(err, unix.EPIPE) { // otherwise the process has exited, which Receive finds, too
		return err.Error()
	}
	m, err := process.Receive()
	got, ok := m.Message.(*query.GotCredential)
	switch {
	case !ok && err != nil:
		return "the process has exited"
	case !ok:
		return "ANOTHER MESSAGE"
	case len(got.Credential) == 0:
		return regexp.MustCompile(`/\S+/`).ReplaceAllString(got.Reason, "")
	case string(got.Credential) == inventedCredential(ordinaryUID, q.Payload[:]):
		return "a credential of this user for this message"
	}
	return "ANOTHER CREDENTIAL"
}

func (asking) Serve(c *own.Client) {
	_ = c.EachMessage(func(ipc.Message) (bool, error) { return true, nil })
}
func (asking) Counters() []any { return nil }
func (asking) Close()          {}

// A starterAttack is what a captured dispatcher does about a process of a user.
type starterAttack struct {
	name    string
	number  uint64                     // for which it has a process started
	process func(fd int, munge string) // what it does with the channel to the process
	role    ipc.Role                   // 0: the process gets credentials
	foreign bool                       // the socket that it names is served by an ordinary user
}

// to sends messages to a process.
func to(fd int, messages ...ipc.Message) {
	for _, m := range messages {
		if raw, err := ipc.Encode(m); err == nil {
			_, _ = unix.Write(fd, raw)
		}
	}
}

// settings returns the settings of the process, with a socket.
func settings(munge string) ipc.Message {
	return &work.CredentialSetup{Credentials: work.Credentials{Munge: work.Munge{Socket: munge}}}
}

var starterAttacks = []starterAttack{
	{name: "what an intact dispatcher does", number: forCredentials, process: func(fd int, munge string) { to(fd, new(ipc.Ping), settings(munge)) }},
	{name: "a process for a number that the keeper has not given", number: forNobody},
	{name: "a process for number 1, as that of a connection", number: 1},
	{name: "a process that gets credentials, for a number that is for reading output", number: forOutput},
	{name: "a process that reads output, for a number that is for credentials", number: forCredentials, role: ipc.Output},
	{name: "it delivers no settings", number: forCredentials, process: func(int, string) {}},
	{name: "settings with the socket of another user", number: forCredentials, foreign: true, process: func(fd int, munge string) { to(fd, new(ipc.Ping), settings(munge)) }},
	{name: "settings with a socket that does not exist", number: forCredentials, process: func(fd int, _ string) { to(fd, new(ipc.Ping), settings("/nowhere/munge")) }},
	{name: "settings for a second time, with another socket", number: forCredentials, process: func(fd int, munge string) {
		to(fd, new(ipc.Ping), settings(munge), settings("/nowhere/munge"))
	}},
	{name: "a channel of its own in place of the keeper's (KeeperChannel)", number: forCredentials, process: func(fd int, munge string) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		raw, _ := ipc.Encode(&ipc.KeeperChannel{Client: forCredentials})
		if err == nil {
			_ = unix.Sendmsg(fd, raw, unix.UnixRights(pair[0]), nil, 0)
		}
		to(fd, settings(munge))
	}},
	{name: "the keeper's question (GetCredential), on its own channel", number: forCredentials, process: func(fd int, munge string) {
		to(fd, new(ipc.Ping), new(query.GetCredential), settings(munge))
	}},
	{name: "a worker for the process (WorkerChannel)", number: forCredentials, process: func(fd int, munge string) {
		raw, _ := ipc.Encode(new(work.WorkerChannel))
		_ = unix.Sendmsg(fd, raw, unix.UnixRights(2), nil, 0)
		to(fd, settings(munge))
	}},
}

// starting is a dispatcher that an attacker controls. It does what is needed to have a
// process of a user started, and then carries out an attack.
type starting struct {
	*compromised
	attack starterAttack
	munge  string
	number uint32
}

const (
	startsProcesses = "starts processes of users"
	gotNoProcess    = "got no process of a user"
)

func playStarting(name, munge string) int {
	return own.Main(ipc.Dispatcher, func(ipc.ServiceSetup) (sandbox.Layers, error) { return sandbox.Layers{}, nil },
		func(parent *ipc.Channel) own.Service {
			s := &starting{compromised: &compromised{parent: parent}, munge: munge}
			for _, a := range starterAttacks {
				if a.name == name {
					s.attack = a
				}
			}
			return s
		})
}

// start requests the next process.
func (s *starting) start(role ipc.Role, client uint64) error {
	s.number++
	return s.parent.Send(&ipc.StartProcess{Number: s.number, Role: role, Generation: s.build, Client: client, Threads: 1})
}

func (s *starting) startUsers() error {
	if s.attack.role != 0 {
		return s.start(s.attack.role, s.attack.number)
	}
	return s.start(ipc.Credential, s.attack.number)
}

// Numbers of the processes.
const (
	resolverNumber = iota + 1
	keeperNumber
)

func (s *starting) Handle(m ipc.Received) (bool, error) {
	switch msg := m.Message.(type) {
	case *ipc.BuildGeneration:
		s.build = msg.ID
	case *ipc.GenerationSetup:
		return true, errors.Join(s.start(ipc.Resolver, 0), s.start(ipc.Keeper, 0))
	case *ipc.ProcessStarted:
		go relayLog(m.FDs[1])
		switch {
		case msg.Number == keeperNumber:
			return true, s.startUsers()
		case msg.Number > keeperNumber:
			slog.Info("got a process of a user", "uid", msg.UID)
			if s.attack.process != nil {
				s.attack.process(m.FDs[0], s.munge)
			}
		}
	case *ipc.StartFailed:
		if s.attack.number == forCredentials && s.number < 1000 { // the keeper has not vouched yet
			time.Sleep(10 * time.Millisecond)
			return true, s.startUsers()
		}
		slog.Info(gotNoProcess, "error", msg.Err())
	}
	return true, nil
}

// relayLog copies the lines of a process to the log.
func relayLog(fd int) {
	f := os.NewFile(uintptr(fd), "log")
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(buf[:n])) {
			fmt.Fprint(os.Stderr, line)
		}
	}
}

// TestCapturedStarter checks what a captured dispatcher can do with the processes that
// get credentials. The keeper is one of the test that asks each of them.
func TestCapturedStarter(t *testing.T) {
	needRoot(t)
	table := make([]string, len(starterAttacks))
	t.Run("attacks", func(t *testing.T) {
		for i, attack := range starterAttacks {
			t.Run(attack.name, func(t *testing.T) {
				t.Parallel()
				table[i] = fmt.Sprintf("| %s | %s |\n", attack.name, runStarterAttack(t, attack))
			})
		}
	})
	checkTable(t, "<!-- attacks of a dispatcher on processes of users: generated by go test ./integration/privsep -run TestCaptured -update -->\n", "<!-- end of attacks of a dispatcher on processes of users -->\n",
		"| the dispatcher requests or sends | result |\n|---|---|\n"+strings.Join(table, ""))
}

func runStarterAttack(t *testing.T, attack starterAttack) string {
	socket := serveMunge(t)
	if attack.foreign {
		must(t, os.Chown(filepath.Dir(socket), 0, 0))
		must(t, os.Remove(socket))
		socket = serveForeign(t)
	}
	c := newVault(t, nil).config(testConfig{Argv: argv{ipc.Keeper: {asksProcesses}, ipc.Dispatcher: {startsProcesses, attack.name, socket}}})
	c.Service = ipc.Service{HasUser: true, HasGroup: true, Name: "worker", UID: workerUID, GID: workerUID, MinUID: 1000, SchedUID: schedUserUID}
	c.Switches.Credentials, c.Switches.Output = true, true
	g := launch(t, nil, c)
	r := g.awaitAny(func(r map[string]any) bool {
		text := fmt.Sprint(r["msg"], r["raw"])
		return strings.Contains(text, gotNoProcess) || strings.Contains(text, keeperHears) || r["msg"] == "failed"
	})
	text := fmt.Sprint(r["msg"], r["raw"], r["error"])
	switch {
	case r["msg"] == "failed":
		_, because, _ := strings.Cut(fmt.Sprint(r["error"]), ": ")
		because, _, _ = strings.Cut(because, " (killed by signal 9")
		return "is killed by the parent: " + because
	case strings.Contains(text, gotNoProcess):
		return "gets no process"
	}
	_, answer, _ := strings.Cut(text, "answer=")
	answer = strings.Trim(answer, "\"\n")
	return "the keeper gets: " + strings.SplitN(answer, `"`, 2)[0]
}

// serveForeign listens on a socket as an ordinary user.
func serveForeign(t *testing.T) string {
	t.Helper()
	dir := sharedDir(t)
	must(t, os.Chown(dir, 0, 0))
	must(t, os.Chmod(dir, 0o777))
	socket := filepath.Join(dir, "munge")
	must(t, thread.RunAs(31777, 31777, func() error { return listenAsMunge(t, socket) }))
	return socket
}
