package privsep

import (
	"bytes"
	"encoding/base64"
	big "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/rpc/payload"
)

// Types of messages.
const (
	readNodes  = 2007
	readStats  = 2035
	submitJob  = 4003
	newToken   = 5039
	unknown    = 5001
	accounting = scope.PersistInit
)

// A thief is a captured worker that has seen tokens.
type thief struct {
	keeper int // descriptor of the channel
	tokens map[string]string
	uids   map[string]uint32
	last   uint64
}

// A stampAttack is an attack of a captured worker where the keeper decides about each
// message.
type stampAttack struct {
	name   string
	do     func(*thief) string
	logged string // a line of the log that the attack causes
}

// A part is a part of the body of a message of a type.
type part struct {
	number uint16
	text   string
}

// stamp sends the parts as one message, and describes the answer. If a process has to
// start, it has it started, and sends the message again.
func (a *thief) stamp(token, actAs string, parts ...part) string {
	answer := a.askStamp(token, actAs, parts...)
	if answer != nil && answer.Client != 0 {
		a.tell(&work.AskCredential{Client: answer.Client, UID: answer.UID})
		answer = a.askStamp(token, actAs, parts...)
	}
	if answer == nil {
		return "HEARS NOTHING"
	}
	return a.describe(answer, parts...)
}

func (a *thief) describe(answer *query.Stamped, parts ...part) string {
	text := ""
	for _, p := range parts {
		text += p.text
	}
	switch {
	case answer.Verdict == query.Genuine && answer.Client != 0:
		return "HAS A PROCESS STARTED"
	case answer.Verdict == query.Genuine && answer.Reason != "":
		return "is answered: " + answer.Reason
	case answer.Verdict != query.Genuine:
		return "is answered: " + map[query.Verdict]string{query.NoVerdict: "UNKNOWN", query.Forged: "forged", query.Revoked: "revoked", query.NotForUser: "not for this user", query.NotInScope: "not in the token's scopes"}[answer.Verdict]
	}
	encoded := strings.TrimSuffix(strings.TrimPrefix(string(answer.Credential), "MUNGE:"), ":")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(raw) != 4+payload.Size {
		return fmt.Sprintf("GETS %q", answer.Credential)
	}
	user := "ANOTHER USER"
	for name, uid := range a.uids {
		if uid == big.BigEndian.Uint32(raw) {
			user = name
		}
	}
	of := "ANOTHER MESSAGE"
	if bytes.Equal(raw[4:], payload.Of(parts[0].number, []byte(text))) {
		of = "exactly this message"
	}
	return "gets a credential of " + user + " for " + of
}

// askStamp sends the parts as one message, and returns the answer.
func (a *thief) askStamp(token, actAs string, parts ...part) *query.Stamped {
	return answerOf(a, a.sendStamp(token, actAs, parts...), new(query.Stamped))
}

// sendStamp sends the parts as one message, and returns the number of the question.
func (a *thief) sendStamp(token, actAs string, parts ...part) (id uint64) {
	last := parts[len(parts)-1]
	for _, p := range parts[:len(parts)-1] {
		a.say(&query.StampPart{Type: p.number, Body: []byte(p.text)})
	}
	a.last++
	q := &query.Stamp{ID: 1<<40 + a.last, ActAs: actAs, Type: last.number, Body: []byte(last.text)}
	q.Signed, q.MAC = a.split(token)
	a.say(q)
	return q.ID
}

// split returns the parts of a token. The name of a token that does not exist stands for
// a forged one.
func (a *thief) split(name string) (signed []byte, mac [32]byte) {
	token, forged := a.tokens[name], false
	if token == "" {
		token, forged = a.tokens["daemon reads"], true
	}
	text, signature, _ := cutLast(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if copy(mac[:], raw); err != nil || forged {
		mac[0] ^= 1
	}
	return []byte(text), mac
}

// say sends a message to the keeper, and tell one to the dispatcher.
func (a *thief) say(m ipc.Message) {
	raw, err := ipc.Encode(m)
	if err != nil {
		panic(err)
	}
	for sendRights(a.keeper, raw, nil) == unix.EAGAIN {
		time.Sleep(time.Millisecond)
	}
}

func (a *thief) tell(m ipc.Message) {
	raw, err := ipc.Encode(m)
	if err != nil {
		panic(err)
	}
	sendFrame(raw, 0)
}

// killedFor sends a message to the keeper, or to the dispatcher, for which the worker
// should be killed.
func (a *thief) killedFor(to func(ipc.Message), m ipc.Message) string {
	to(m)
	return wait()
}

// next returns the next answer of the keeper, or nil if there is none for a long time.
func (a *thief) next() []byte {
	raw := make([]byte, ipc.MaxMessage)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		n, _, err := unix.Recvfrom(a.keeper, raw, unix.MSG_DONTWAIT)
		if err == nil && n > 0 {
			return raw[:n]
		}
		if err != unix.EAGAIN {
			return nil
		}
	}
	return nil
}

// answerOf reads the answer to the question with the number id into m, and returns m, or
// nil if there is no answer.
func answerOf[M ipc.Message](a *thief, id uint64, m M) (none M) {
	for {
		raw := a.next()
		switch {
		case raw == nil:
			return none
		case len(raw) < 9 || ipc.Kind(raw[0]) != ipc.KindOf(m) || big.LittleEndian.Uint64(raw[1:]) != id:
		case ipc.Unmarshal(raw[1:], m) == nil:
			return m
		}
	}
}

// untilRevoked waits until the keeper no longer accepts a token.
func (a *thief) untilRevoked(token string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		a.last++
		q := &query.Exchange{ID: 1<<40 + a.last, Check: true}
		q.Signed, q.MAC = a.split(token)
		a.say(q)
		if answer := answerOf(a, q.ID, new(query.Exchanged)); answer == nil || answer.Verdict == query.Revoked {
			return answer != nil
		}
	}
	return false
}

// numberFor returns the number that the parent has for a user whose process has not
// started: for one that gets credentials or, with output, for one that reads output.
func (a *thief) numberFor(token string, output bool) (client uint64, uid uint32) {
	if !output {
		if answer := a.askStamp(token, "", part{readNodes, "\x00\x01"}); answer != nil {
			return answer.Client, answer.UID
		}
		return 0, 0
	}
	a.last++
	q := &query.VouchFor{ID: 1<<40 + a.last, Gateway: true}
	q.Signed, q.MAC = a.split(token)
	a.say(q)
	if answer := answerOf(a, q.ID, new(query.VouchedFor)); answer != nil {
		return answer.Client, answer.UID
	}
	return 0, 0
}

const partSent = "a part is sent"

// manyStamps is the number of messages that a captured worker sends at once. All of them
// together have places in the keeper (limit.KeeperPending).
const manyStamps = 60

var read = part{readNodes, "\x00\x01"}

var stampAttacks = []stampAttack{
	// First some messages that are permitted. Otherwise the refusals would prove nothing.
	{name: "a message of a type that the token permits", do: func(a *thief) string { return a.stamp("daemon reads", "", read) }},
	{name: "a submission of 60 KiB, in three parts", do: func(a *thief) string {
		script := strings.Repeat("script ", 3000)
		return a.stamp("daemon can do all", "", part{submitJob, script}, part{submitJob, script}, part{submitJob, script})
	}},
	{name: "a portal's token for a member of its group", do: func(a *thief) string { return a.stamp("portal reads", "daemon", read) }},

	// Types of messages.
	{name: "a submission, with a token that only reads", do: func(a *thief) string { return a.stamp("daemon reads", "", part{submitJob, "script"}) }},
	{name: "a token of the cluster (message 5039), with all scopes", do: func(a *thief) string { return a.stamp("daemon can do all", "", part{newToken, "\x00\x00\x0e\x10"}) }},
	{name: "a message that is in no scope, with all scopes", do: func(a *thief) string { return a.stamp("daemon can do all", "", part{unknown, ""}) }},
	{name: "a connection to slurmdbd, without its scope", do: func(a *thief) string { return a.stamp("daemon reads", "", part{accounting, ""}) }},
	{name: "the statistics", do: func(a *thief) string { return a.stamp("daemon reads", "", part{readStats, "\x00\x01"}) }},
	{name: "a reset of the statistics, which has the same type", do: func(a *thief) string { return a.stamp("daemon reads", "", part{readStats, "\x00\x00"}) }},
	{name: "the reset, with its bytes in two parts", do: func(a *thief) string {
		return a.stamp("daemon reads", "", part{readStats, "\x00"}, part{readStats, "\x00"})
	}},
	{name: "the reset, after an empty part", do: func(a *thief) string {
		return a.stamp("daemon reads", "", part{readStats, ""}, part{readStats, "\x00\x00"})
	}},

	// Users.
	{name: "as another user, with a user's token", do: func(a *thief) string { return a.stamp("daemon reads", "bin", read) }},
	{name: "as root, with a user's token", do: func(a *thief) string { return a.stamp("daemon reads", "root", read) }},
	{name: "with a forged token of a user", do: func(a *thief) string { return a.stamp("forged", "", read) }},
	{name: "a portal's token for a user who is not a member", do: func(a *thief) string { return a.stamp("portal reads", "bin", read) }},
	{name: "a portal's token for a user who does not exist", do: func(a *thief) string { return a.stamp("portal reads", "no-such-user", read) }},
	{name: "a portal's token for root", do: func(a *thief) string { return a.stamp("portal reads", "root", read) }},
	{name: "a portal's token without a user", do: func(a *thief) string { return a.stamp("portal reads", "", read) }},

	// Hashes and parts.
	{name: "the hash of a submission in place of a body", do: func(a *thief) string {
		return a.stamp("daemon reads", "", part{readNodes, string(payload.Of(submitJob, []byte("script")))})
	}},
	{name: "parts of a message in another order", do: func(a *thief) string {
		return a.stamp("daemon can do all", "", part{submitJob, "second"}, part{submitJob, "first"})
	}},
	{name: "two messages at once: the credential of the first", do: func(a *thief) string {
		first := a.sendStamp("daemon reads", "", read)
		a.sendStamp("daemon reads", "", part{readNodes, "\x00\x02"})
		answer := answerOf(a, first, new(query.Stamped))
		if answer == nil {
			return "HEARS NOTHING"
		}
		return a.describe(answer, read)
	}},
	{name: "a part of a permitted message, then one that is not", do: func(a *thief) string {
		a.sendStamp("daemon reads", "", read, part{submitJob, "script"})
		return wait()
	}},
	{name: "a part, and the rest after the token is revoked", do: func(a *thief) string {
		a.say(&query.StampPart{Type: readNodes, Body: []byte("\x00")})
		slog.Info(partSent)
		if !a.untilRevoked("will be revoked") {
			return "IS NOT REVOKED"
		}
		return a.stamp("will be revoked", "", part{readNodes, "\x01"})
	}},

	// Loads.
	{name: "a message without end", do: func(a *thief) string {
		raw, err := ipc.Encode(&query.StampPart{Type: readNodes, Body: make([]byte, 24<<10)})
		for err == nil {
			_, err = unix.Write(a.keeper, raw)
		}
		if err != unix.EAGAIN {
			return err.Error()
		}
		return "fills only its own channel"
	}},
	{name: fmt.Sprintf("%d messages of a user at once, for whom it has no process started", manyStamps), do: func(a *thief) string {
		var ids []uint64
		for range manyStamps {
			ids = append(ids, a.sendStamp("bin reads", "", read))
		}
		count := map[string]int{}
		for range ids {
			for {
				var answer query.Stamped
				raw := a.next()
				if raw == nil {
					return fmt.Sprint("HEARS NO MORE: ", count)
				}
				if ipc.Kind(raw[0]) == ipc.KindOf(&answer) && ipc.Unmarshal(raw[1:], &answer) == nil && slices.Contains(ids, answer.ID) {
					if answer.Client != 0 {
						answer.Reason = "a process has to start"
					}
					count[answer.Reason]++
					break
				}
			}
		}
		// The first one, which starts a process, may still have its place when the last one comes.
		waited, most := count["the process of the user has not started in time"], limit.KeeperStamps.Share
		if waited > most || waited < most-1 || count["too many messages of this user wait for credentials"] != manyStamps-1-waited {
			return fmt.Sprint("HEARS ", count)
		}
		return fmt.Sprintf("at most %d of them wait, and the others are refused", most)
	}},

	// Processes.
	{name: "a process for number 0", do: func(a *thief) string { return a.killedFor(a.tell, &work.AskCredential{UID: a.uids["daemon"]}) }},
	{name: "a process for a number that it has guessed", do: func(a *thief) string {
		a.tell(&work.AskCredential{Client: 12345, UID: a.uids["daemon"]})
		return "gets none: " + a.stamp("daemon reads", "", read) + ", as before"
	}, logged: "no process gets the credentials of a user"},
	{name: "a process for guessed numbers, without end", do: func(a *thief) string {
		for n := uint64(1); ; n += 2 {
			a.tell(&work.AskCredential{Client: n, UID: a.uids["daemon"]})
		}
	}},
	{name: "a process for a number that is for reading output", do: func(a *thief) string {
		client, uid := a.numberFor("daemon reads", true)
		if client == 0 {
			return "GETS NO NUMBER"
		}
		return a.killedFor(a.tell, &work.AskCredential{Client: client, UID: uid})
	}},
	{name: "a process that reads output, for a number that is for credentials", do: func(a *thief) string {
		client, uid := a.numberFor("bin reads", false)
		if client == 0 {
			return "GETS NO NUMBER"
		}
		return a.killedFor(a.tell, &work.AskOutput{Client: client, UID: uid})
	}},
	{name: "a process for the number of a user, on the account of another", do: func(a *thief) string {
		client, _ := a.numberFor("bin reads", false)
		if client == 0 {
			return "GETS NO NUMBER"
		}
		return a.killedFor(a.tell, &work.AskCredential{Client: client, UID: a.uids["daemon"]})
	}},

	// Messages of others.
	{name: "the keeper's question to a process (GetCredential), to the keeper", do: func(a *thief) string { return a.killedFor(a.say, new(query.GetCredential)) }},
	{name: "a process's answer (GotCredential), to the keeper", do: func(a *thief) string { return a.killedFor(a.say, new(query.GotCredential)) }},
	{name: "the dispatcher's message that no process starts (NoCredential), to the keeper", do: func(a *thief) string { return a.killedFor(a.say, &work.NoCredential{Client: 1}) }},
	{name: "the channel of a process (KeeperChannel), to the keeper", do: func(a *thief) string { return a.killedFor(a.say, &ipc.KeeperChannel{Client: 1}) }},
	{name: "Stamp, to the dispatcher", do: func(a *thief) string { return a.killedFor(a.tell, new(query.Stamp)) }},
	{name: "CredentialSetup, to the dispatcher", do: func(a *thief) string { return a.killedFor(a.tell, new(work.CredentialSetup)) }},
	{name: "a part of 24 KiB and a byte", do: func(a *thief) string {
		raw, _ := ipc.Encode(&query.StampPart{Type: readNodes, Body: make([]byte, 24<<10)})
		raw[3]++
		_, _ = unix.Write(a.keeper, append(raw, 0))
		return wait()
	}},
}

// handleStampAttack carries out the attack that a request of the test names.
func handleStampAttack(w http.ResponseWriter, r *http.Request) {
	a := &thief{keeper: steal(1)}
	i := slices.IndexFunc(stampAttacks, func(s stampAttack) bool { return s.name == r.FormValue("name") })
	if i < 0 || a.keeper < 0 || json.Unmarshal([]byte(r.FormValue("tokens")), &a.tokens) != nil || json.Unmarshal([]byte(r.FormValue("uids")), &a.uids) != nil {
		fmt.Fprint(w, "NO SUCH ATTACK, OR NO CHANNEL")
		return
	}
	fmt.Fprint(w, stampAttacks[i].do(a))
}

// TestCapturedStamps checks that each attempt of a captured worker to get a credential
// has the effect that docs/generated/ATTACKS*.md states. After each attempt, another
// worker must get the credential of a message, and at the end the same keeper and
// dispatcher must still run.
func TestCapturedStamps(t *testing.T) {
	t.Parallel()
	b := serveBound(t, testConfig{})
	keeper, dispatcher := b.keeperPID(1), b.dispatcherPID()
	go func() {
		for !t.Failed() && t.Context().Err() == nil && b.count("worker: "+partSent) == 0 {
			time.Sleep(time.Millisecond)
		}
		f, err := os.OpenFile(b.register, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(gatewaytoken.RevokeToken(idOf("will be revoked")))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}()
	table := &strings.Builder{}
	fmt.Fprintf(table, "| attempt | result |\n|---|---|\n")
	for _, attack := range stampAttacks {
		logged := b.count(attack.logged)
		outcome := b.runStampAttack(attack)
		fmt.Fprintf(table, "| %s | %s |\n", attack.name, outcome)
		if attack.logged != "" {
			b.awaitMany(attack.logged, logged+1)
		}
		if got := b.stamped("daemon"); got != "good" {
			t.Errorf("after %q, another worker: %s", attack.name, got)
		}
	}
	if b.count("keeper ready") != 1 || syscall.Kill(keeper, 0) != nil || syscall.Kill(dispatcher, 0) != nil || b.count("dispatcher exited") > 0 {
		t.Error("the keeper or the dispatcher has been replaced")
	}
	// The processes of users end with their keeper, and not by their sandbox.
	must(t, syscall.Kill(keeper, syscall.SIGKILL))
	b.awaitMany("keeper ready", 2)
	if got := b.stamped("bin"); got != "good" || b.count("credential exited") > 0 {
		t.Errorf("after the exit of the keeper: %s; %d processes were killed", got, b.count("credential exited"))
	}
	checkTable(t, "<!-- attacks on bound tokens: generated by go test ./integration/privsep -run TestCaptured -update -->\n", "<!-- end of attacks on bound tokens -->\n", table.String())
}

// runStampAttack has a captured worker carry out an attack, and returns the outcome.
// Then it kills the worker.
func (b *bound) runStampAttack(attack stampAttack) string {
	b.t.Helper()
	tokens, err := json.Marshal(b.tokens)
	must(b.t, err)
	uids := map[string]uint32{}
	for _, name := range boundUsers {
		uids[name] = uidOf(name)
	}
	ids, err := json.Marshal(uids)
	must(b.t, err)
	pid, answer, err := b.attackWorker("/stamps?" + url.Values{"name": {attack.name}, "tokens": {string(tokens)}, "uids": {string(ids)}}.Encode())
	if err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return answer
	}
	end := b.awaitAny(func(r map[string]any) bool { return r["pid"] == float64(pid) && endsWorker(r) })
	return fmt.Sprintf("is %s: %s", strings.TrimPrefix(fmt.Sprint(end["msg"]), "worker "), end["because"])
}
