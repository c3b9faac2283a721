package privsep

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	own "schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security/sandbox"
)

// hostileVouches lists users for whom a captured keeper vouches, and who must get no
// process.
var hostileVouches = []struct {
	name string
	uid  uint32
}{
	{"root", 0}, {"a user of the system", 999}, {"SchedUser", schedUserUID}, {"the user of the workers", workerUID}, {"the overflow id", become.Overflow}, {"no user", become.NoID},
}

const (
	schedUserUID, workerUID = 31777, 31000
	ordinaryUID             = 31001 // of a user whose tokens the keeper has not seen
)

// Parts of a captured keeper.
const (
	vouchesForAll = "vouches for all"
	stampsForAll  = "vouches for all, for credentials"
	sendsChannel  = "gives the parent the channel of a process"
	breaksVouches = "breaks the protocol on the channel to the parent"
)

// vouching is a keeper that an attacker controls, and that vouches for users whose
// tokens it has not seen.
type vouching struct {
	dispatcher *ipc.Channel
	part       string
}

func playVouching(part string) int {
	return own.Main(ipc.Keeper, func(ipc.ServiceSetup) (sandbox.Layers, error) { return sandbox.Layers{}, nil },
		func(dispatcher *ipc.Channel) own.Service { return &vouching{dispatcher, part} })
}

func (v *vouching) Handle(m ipc.Received) (bool, error) {
	switch m.Message.(type) {
	case *ipc.SecretKeys:
		return true, v.dispatcher.Send(&ipc.KeysResult{OK: true, Token: true})
	case *ipc.KeeperChannels:
		switch v.part {
		case breaksVouches:
			_, err := unix.Write(m.FDs[0], []byte{byte(ipc.KindOf(new(ipc.Vouch))), 1, 2})
			return true, err
		case sendsChannel:
			raw, err := ipc.Encode(&ipc.KeeperChannel{Client: forCredentials})
			if err == nil {
				err = unix.Sendmsg(m.FDs[0], raw, unix.UnixRights(2), nil, 0)
			}
			return true, err
		}
		channel, err := ipc.Open(m.FDs[0], ipc.Keeper, ipc.Acceptor)
		if err == nil {
			go v.vouch(channel)
		}
		return true, err
	}
	return false, nil
}

// vouch vouches for the hostile users, for a user of the gateway itself, for one who may
// have a process and, last, for many at once, with as many groups as possible.
func (v *vouching) vouch(channel *ipc.Channel) {
	ask := func(question *ipc.Vouch) (answer *ipc.Vouched, ok bool) {
		if err := channel.Send(question); err != nil {
			slog.Error("not sent", "error", err)
			return nil, false
		}
		m, err := channel.Receive()
		if answer, ok = m.Message.(*ipc.Vouched); !ok {
			slog.Error("no answer", "error", err)
		}
		return answer, ok
	}
	uids := []uint32{uint32(unix.Getuid())}
	for _, h := range hostileVouches {
		uids = append(uids, h.uid)
	}
	for _, uid := range append(uids, ordinaryUID) {
		answer, ok := ask(&ipc.Vouch{Client: v.number(uint64(uid)), UID: uid, GID: 31001, Groups: []uint32{0, 42, 31002}})
		if !ok {
			return
		}
		slog.Info("vouched", "for", uid, "accepted", answer.Client != 0)
	}
	begun := time.Now()
	for i := range uint32(vouchesAtOnce) {
		if _, ok := ask(&ipc.Vouch{Client: v.number(1<<40 + uint64(i)), UID: ordinaryUID + i, GID: 31001, Groups: make([]uint32, query.MaxGroups)}); !ok {
			return
		}
	}
	slog.Info("vouched without pause", "for", vouchesAtOnce, "took", time.Since(begun))
}

// number returns the nth number for the kind of process (ipc.Vouch).
func (v *vouching) number(n uint64) uint64 {
	if v.part == stampsForAll {
		return 2*n + 1
	}
	return 2*n + 2
}

// vouchesAtOnce is the number of users for whom a captured keeper vouches without pause.
const vouchesAtOnce = 110

func (*vouching) Serve(c *own.Client) {
	_ = c.EachMessage(func(ipc.Message) (bool, error) { return true, nil }) // answers nothing
}
func (*vouching) Counters() []any { return nil }
func (*vouching) Close()          {}

// awaitKilledKeeper waits until the keeper has been killed. If that happens before the
// gateway serves, the start fails.
func (g *gateway) awaitKilledKeeper() {
	g.t.Helper()
	const killed = "killed by signal 9"
	isEnd := func(r map[string]any) bool {
		return r["msg"] == "keeper exited" && strings.Contains(fmt.Sprint(r["because"]), killed) ||
			r["msg"] == "failed" && strings.Contains(fmt.Sprint(r["error"]), "the keeper exited unexpectedly: "+killed)
	}
	deadline := time.After(patience)
	for {
		g.mu.Lock()
		ended := slices.ContainsFunc(g.records, isEnd)
		g.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-g.more:
		case <-deadline:
			g.t.Fatal("the keeper is not killed")
		}
	}
}

// TestCapturedKeeperVouches checks as which users a captured keeper can have processes
// started, and that it is killed if it breaks the protocol.
func TestCapturedKeeperVouches(t *testing.T) {
	needRoot(t)
	for _, part := range []string{vouchesForAll, stampsForAll, breaksVouches, sendsChannel} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			c := newVault(t, nil).config(testConfig{Argv: argv{ipc.Keeper: {part}}})
			c.Switches.Output, c.Switches.Credentials = part != stampsForAll, part == stampsForAll
			c.Service = ipc.Service{HasUser: true, HasGroup: true, Name: "worker", UID: workerUID, GID: workerUID, MinUID: 1000, SchedUID: schedUserUID}
			c.Setup.JWT = true
			g := launch(t, nil, c)
			if part == breaksVouches || part == sendsChannel {
				g.awaitKilledKeeper()
				return
			}
			accepted := map[string]bool{} // by uid
			g.await("keeper: vouched", func(r map[string]any) bool {
				accepted[fmt.Sprint(r["for"])] = fmt.Sprint(r["accepted"]) == "true"
				return fmt.Sprint(r["for"]) == fmt.Sprint(ordinaryUID)
			})
			if n := len(hostileVouches) + 2; len(accepted) != n {
				t.Errorf("%d answers, want %d: %v", len(accepted), n, accepted)
			}
			table := "| as | result |\n|---|---|\n"
			row := func(name, uid string) {
				result := "no process"
				if accepted[uid] {
					result = "a process that reads output"
					if part == stampsForAll {
						result = "a process that gets credentials"
					}
				}
				delete(accepted, uid)
				table += "| " + name + " | " + result + " |\n"
			}
			for _, h := range hostileVouches {
				row(h.name, fmt.Sprint(h.uid))
			}
			row("an ordinary user", fmt.Sprint(ordinaryUID))
			for uid := range accepted { // the keeper's own, which differs from machine to machine
				row("the user of the keeper", uid)
			}
			limit, result := limit.ParentVouches, "all are remembered"
			r := g.await("keeper: vouched without pause", nil)
			took, err := time.ParseDuration(fmt.Sprint(r["took"]))
			must(t, err)
			if cost := 1 + query.MaxGroups/100.; took.Seconds() >= (vouchesAtOnce*cost-limit.Burst)/limit.PerSecond {
				result = fmt.Sprintf("after %d of them, the keeper waits: %d are remembered in a second", int(limit.Burst/cost), int(limit.PerSecond/cost))
			}
			table += fmt.Sprintf("| %d users at once, with %d groups each | %s |\n", vouchesAtOnce, query.MaxGroups, result)
			name := "vouches"
			if part == stampsForAll {
				name = "vouches for credentials"
			}
			checkTable(t, "<!-- "+name+": generated by go test ./integration/privsep -run TestCaptured -update -->\n", "<!-- end of "+name+" -->\n", table)
		})
	}
}
