package privsep

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/credential"
	"schedrestd/gateway/dispatcher/process"
	own "schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/security/sandbox"
)

// A credentialAttack is what a captured process does that gets the credentials of a
// user, when the keeper asks it for one.
type credentialAttack struct {
	name  string
	do    func(c *compromisedCredential, keeper int, q *query.GetCredential) (result string) // a result that is not "" is logged
	wait  bool                                                                               // the test waits for the result, or for the end of the process
	again bool                                                                               // there are two messages
}

// answers returns an attack that sends frames to the keeper.
func answers(name string, frames func(q *query.GetCredential) [][]byte) credentialAttack {
	return credentialAttack{name: name, do: func(_ *compromisedCredential, keeper int, q *query.GetCredential) string {
		for _, f := range frames(q) {
			_, _ = unix.Write(keeper, f)
		}
		return ""
	}}
}

var longCredential = strings.Repeat("x", 24<<10)

func gotCredential(id uint64, text string) []byte {
	raw, err := ipc.Encode(&query.GotCredential{ID: id, Credential: []byte(text)})
	if err != nil {
		panic(err)
	}
	return raw
}

// toDispatcher returns an attack that sends an empty message to the dispatcher.
func toDispatcher(name string, m ipc.Message, size int) credentialAttack {
	return credentialAttack{name: name, wait: true, do: func(*compromisedCredential, int, *query.GetCredential) string {
		_, _ = unix.Write(ipc.ServiceChannelFD, append([]byte{byte(ipc.KindOf(m))}, make([]byte, size)...))
		return wait()
	}}
}

var credentialAttacks = slices.Concat([]credentialAttack{
	answers("an invented credential", func(q *query.GetCredential) [][]byte { return [][]byte{gotCredential(q.ID, "MUNGE:invented:")} }),
	answers("an invented credential of 24 KiB", func(q *query.GetCredential) [][]byte {
		return [][]byte{gotCredential(q.ID, longCredential)}
	}),
	answers("one that is longer by a byte", func(q *query.GetCredential) [][]byte {
		raw := gotCredential(q.ID, longCredential)
		raw[len(raw)-24<<10-2]++
		return [][]byte{append(raw, 'x')}
	}),
	answers("two answers to one question", func(q *query.GetCredential) [][]byte {
		return [][]byte{gotCredential(q.ID, "MUNGE:first:"), gotCredential(q.ID, "MUNGE:second:")}
	}),
	answers("100 answers to questions that nobody asked, then one", func(q *query.GetCredential) (list [][]byte) {
		for i := range uint64(100) {
			list = append(list, gotCredential(q.ID+1+i, "MUNGE:unasked:"))
		}
		return append(list, gotCredential(q.ID, "MUNGE:asked:"))
	}),
	answers("no answer", func(*query.GetCredential) [][]byte { return nil }),
	answers("an answer to another question", func(q *query.GetCredential) [][]byte { return [][]byte{gotCredential(q.ID+1, "MUNGE:other:")} }),
	{name: "an answer after the deadline, with the next question", again: true, do: func(c *compromisedCredential, keeper int, q *query.GetCredential) string {
		if c.asked.Add(1) == 2 {
			_, _ = unix.Write(keeper, gotCredential(q.ID-1, "MUNGE:late:"))
			_, _ = unix.Write(keeper, gotCredential(q.ID, "MUNGE:next:"))
		}
		return ""
	}},
	answers("the question itself, as an answer", func(q *query.GetCredential) [][]byte {
		raw, _ := ipc.Encode(q)
		return [][]byte{raw}
	}),
	answers("a vouch for root, to the keeper", func(*query.GetCredential) [][]byte {
		return [][]byte{append([]byte{byte(ipc.KindOf(new(ipc.Vouch)))}, make([]byte, 18)...)}
	}),
	answers("the channel of another process (KeeperChannel), to the keeper", func(*query.GetCredential) [][]byte {
		return [][]byte{append([]byte{byte(ipc.KindOf(new(ipc.KeeperChannel)))}, make([]byte, 8)...)}
	}),
	answers("an answer cut short", func(q *query.GetCredential) [][]byte { return [][]byte{gotCredential(q.ID, "")[:11]} }),
}, []credentialAttack{
	toDispatcher("a process of root (StartProcess)", new(ipc.StartProcess), 26),
	toDispatcher("a process of another user (AskCredential)", new(work.AskCredential), 12),
	toDispatcher("a process that reads output (AskOutput)", new(work.AskOutput), 12),
	toDispatcher("a connection to a daemon (Dial)", new(work.Dial), 12),
	toDispatcher("a name (Lookup)", new(work.Lookup), 15),
	toDispatcher("the death of a worker (WorkerViolation)", new(work.WorkerViolation), 6),
	toDispatcher("settings of its own (CredentialSetup)", new(work.CredentialSetup), 14),
	toDispatcher("Ready for the second time", new(ipc.Ready), 4),
	toDispatcher("Pong without Ping", new(ipc.Pong), 8),
}, systemCalls(attacksNamed(
	"read /etc/shadow", "read /proc/1/environ", "make a file in /tmp", "list a directory",
	"signal the parent", "kill all processes that it may signal", "open a process (pidfd_open)", "read the memory of another process", "debug another process (ptrace)",
	"fork", "execute /bin/sh", "make a program in memory", "become root", "gain groups", "unshare a user namespace", "enter a namespace",
	"map memory that is writable and executable", "io_uring", "bpf", "keyctl", "install another filter",
	"a socket: IPv4", "a socket: UNIX", "a socket: UNIX datagram", "a socket: netlink", "make a pair of sockets",
)))

// systemCalls returns attacks that make system calls.
func systemCalls(list []attack) (all []credentialAttack) {
	for _, a := range list {
		all = append(all, credentialAttack{name: a.name, wait: true, do: func(*compromisedCredential, int, *query.GetCredential) string { return a.do() }})
	}
	return all
}

// A compromisedCredential is such a process in its complete sandbox.
type compromisedCredential struct {
	attack credentialAttack
	asked  atomic.Uint64
}

// playCredential runs the real process or, with arguments, a compromised one of one user.
// A file says which attack it carries out.
func playCredential(args []string) int {
	if len(args) == 0 || fmt.Sprint(os.Getuid()) != args[2] {
		return credential.Main()
	}
	name, _ := os.ReadFile(args[1])
	c := &compromisedCredential{attack: credentialAttacks[slices.IndexFunc(credentialAttacks, func(a credentialAttack) bool { return a.name == string(name) })]}
	confine := func(ipc.ServiceSetup) (sandbox.Layers, error) {
		return sandbox.Close(sandbox.Options{Kind: sandbox.Credential}, false)
	}
	return own.Main(ipc.Credential, confine, func(*ipc.Channel) own.Service { return c })
}

func (c *compromisedCredential) Handle(m ipc.Received) (bool, error) {
	if _, ok := m.Message.(*ipc.KeeperChannel); ok {
		fd := m.FDs[0]
		keeper, err := ipc.Open(fd, ipc.Credential, ipc.Keeper)
		if err != nil {
			return true, err
		}
		slog.Info(attackBegins, "attack", c.attack.name)
		go func() {
			for {
				m, err := keeper.Receive()
				if err != nil {
					return
				}
				q := m.Message.(*query.GetCredential)
				if result := c.attack.do(c, fd, q); result != "" {
					slog.Info(attackResult, "result", result)
					_, _ = unix.Write(fd, gotCredential(q.ID, "")) // so that the test need not wait
				}
			}
		}()
	}
	return true, nil
}

const attackBegins, attackResult = "a captured process", "the result of an attack"

func (*compromisedCredential) Serve(*own.Client) {}
func (*compromisedCredential) Counters() []any   { return nil }
func (*compromisedCredential) Close()            {}

// TestCapturedCredential checks that each attack of a process that gets a user's
// credentials has the effect that docs/generated/ATTACKS*.md states. Most of them end
// the process, and the next message starts another. Messages of other users must not
// notice any of them.
func TestCapturedCredential(t *testing.T) {
	t.Parallel()
	file := filepath.Join(sharedDir(t), "attack")
	b := serveBound(t, testConfig{Argv: argv{ipc.Credential: {"captured", file, fmt.Sprint(uidOf("daemon"))}}})
	table := &strings.Builder{}
	fmt.Fprintf(table, "| attempt | the process, or a message of its user |\n|---|---|\n")
	for _, attack := range credentialAttacks {
		must(t, os.WriteFile(file, []byte(attack.name), 0o644))
		fmt.Fprintf(table, "| %s | %s |\n", attack.name, b.runCredentialAttack(attack))
		if got := b.stamped("bin"); got != "good" {
			t.Errorf("after %q another user gets %s", attack.name, got)
		}
	}
	if b.count("keeper ready") != 1 || b.count("dispatcher exited") > 0 {
		t.Error("the keeper or the dispatcher has been replaced")
	}
	checkTable(t, "<!-- attacks of a process of a user: generated by go test ./integration/privsep -run TestCaptured -update -->\n", "<!-- end of attacks of a process of a user -->\n", table.String())
}

// runCredentialAttack has a process carry out an attack, by a message of its user, and
// returns the outcome. Then it kills the processes that have done so.
func (b *bound) runCredentialAttack(attack credentialAttack) (outcome string) {
	b.t.Helper()
	began := func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.records, func(r map[string]any) bool { return r["attack"] == attack.name })
	}
	isIts := func(pid any) bool {
		return slices.ContainsFunc(b.records, func(r map[string]any) bool {
			return r["msg"] == "credential: "+attackBegins && r["attack"] == attack.name && r["credential_pid"] == pid
		})
	}
	if !attack.wait {
		outcome = b.messageFor(began)
		if attack.again {
			outcome = b.messageFor(began)
		}
		if reason, ok := strings.CutPrefix(outcome, "no credential: the gateway gets no credential for the daemon at present: "); ok {
			outcome = "gets no credential: " + reason
		} else {
			outcome = "gets " + strings.Replace(outcome, longCredential, "it", 1)
		}
	} else {
		text := make(chan string, 1)
		go func() { text <- b.messageFor(began) }()
		r := b.awaitAny(func(r map[string]any) bool {
			return r["msg"] == "credential: "+attackResult && isIts(r["credential_pid"]) || r["msg"] == "credential exited" && isIts(r["pid"])
		})
		switch {
		case r["result"] == "EPERM" || r["result"] == "ENOSYS":
			outcome = fmt.Sprint(r["result"], " from the filter")
		case r["result"] != nil:
			outcome = fmt.Sprint(r["result"])
		case strings.Contains(fmt.Sprint(r["because"]), "killed by its sandbox") && r["hint"] == process.CaptureHint:
			outcome = "is killed by SIGSYS"
		default:
			// The parent may connect the process to the keeper before the dispatcher has sent its first message.
			outcome = strings.Replace(fmt.Sprint("is killed: ", r["because"]), "while handover", "while serving", 1)
		}
		<-text
	}
	b.awaitAny(func(r map[string]any) bool { return isIts(r["credential_pid"]) })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.records {
		if pid, ok := r["credential_pid"].(float64); ok && isIts(pid) {
			_ = unix.Kill(int(pid), unix.SIGKILL)
		}
	}
	return outcome
}

// messageFor returns the result of a message of the user, in words, for which the process
// has begun its attack. Until then the process of an earlier attack may still exist.
func (b *bound) messageFor(began func() bool) string {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		text, err := get(client("tcp", b.addr, false), "/stamp?token="+b.tokens["daemon reads"])
		switch {
		case time.Now().After(deadline):
			b.t.Fatalf("%v: %s", err, text)
		case err == nil && (began() || !strings.Contains(text, "no process of the user")):
			return text
		}
	}
}
