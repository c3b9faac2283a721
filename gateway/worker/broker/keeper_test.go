package broker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// keeperEnd connects client to a new channel, and returns the keeper's end.
func keeperEnd(t *testing.T, client *Keeper) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	must(t, client.Connect(fd))
	return c
}

// TestKeeperVerifies checks that answers may arrive in any order, and that each
// answer is matched to its question by number.
func TestKeeperVerifies(t *testing.T) {
	keeper := NewKeeper()
	mac := bytes.Repeat([]byte{7}, 32)
	ask := func(text string) auth.Answer {
		return keeper.Verify(t.Context(), auth.Signature{Signed: text, Bytes: mac})
	}
	if ask("a.b") != auth.Unknown {
		t.Error("an answer without a keeper")
	}
	c := keeperEnd(t, keeper)
	verdicts := map[string]query.Verdict{"good": query.Genuine, "bad": query.Forged, "none": query.NoVerdict}
	want := map[string]auth.Answer{"good": auth.Good, "bad": auth.Bad, "none": auth.Unknown}
	var wg sync.WaitGroup
	for text := range want {
		wg.Go(func() {
			if got := ask(text); got != want[text] {
				t.Errorf("%s: %d", text, got)
			}
		})
	}
	var questions []*query.Verify
	for range want {
		m, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		q := m.Message.(*query.Verify)
		if !bytes.Equal(q.MAC[:], mac) {
			t.Errorf("asked of %x", q.MAC)
		}
		questions = append(questions, q)
	}
	_ = c.Send(&query.Verified{ID: 1 << 40, Verdict: query.Genuine}) // no request waits for this answer
	for i := len(questions) - 1; i >= 0; i-- {
		if err := c.Send(&query.Verified{ID: questions[i].ID, Verdict: verdicts[string(questions[i].Signed)]}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	for _, n := range []int{0, 31, 33, 256} {
		if got := keeper.Verify(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, n)}); got != auth.Bad {
			t.Errorf("a signature of %d bytes: %d", n, got)
		}
	}
}

// TestKeeperExits checks that pending questions immediately get the answer
// Unknown if the keeper exits or sends an answer of the wrong type.
func TestKeeperExits(t *testing.T) {
	for name, end := range map[string]func(*ipc.Channel, uint64){
		"exits":           func(c *ipc.Channel, _ uint64) { c.Close() },
		"signs instead":   func(c *ipc.Channel, id uint64) { _ = c.Send(&query.Signed{ID: id, Signature: []byte("yes")}) },
		"does not answer": func(*ipc.Channel, uint64) {},
	} {
		t.Run(name, func(t *testing.T) {
			keeper := NewKeeper()
			c := keeperEnd(t, keeper)
			answer := make(chan auth.Answer, 1)
			go func() {
				answer <- keeper.Verify(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
			}()
			m, err := c.Receive()
			if err != nil {
				t.Fatal(err)
			}
			end(c, m.Message.(*query.Verify).ID)
			if got := <-answer; got != auth.Unknown {
				t.Errorf("answer %d", got)
			}
		})
	}
}

// TestTokensWaitForNoHandshake checks that a token is verified without delay,
// even while the maximum number of handshakes are waiting for the keeper.
func TestTokensWaitForNoHandshake(t *testing.T) {
	keeper := NewKeeper()
	c := keeperEnd(t, keeper)
	for range 2 * limit.Signatures.Total {
		go func() { _, _ = keeper.Sign("", 1, []byte("handshake")) }()
	}
	answer := make(chan auth.Answer, 1)
	for handshakes := 0; ; handshakes++ {
		m, err := c.Receive()
		if err != nil {
			t.Fatalf("%v after %d handshakes, and no request asked about the token", err, handshakes)
		}
		if q, ok := m.Message.(*query.Verify); ok {
			_ = c.Send(&query.Verified{ID: q.ID, Verdict: query.Genuine})
			break
		}
		if handshakes == limit.Signatures.Total-1 { // no more handshakes can be pending
			go func() {
				answer <- keeper.Verify(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
				c.Close()
			}()
		}
	}
	if got := <-answer; got != auth.Good {
		t.Errorf("answer %d", got)
	}
}

// TestCancelledRequestLeavesKeeper checks that a cancelled request does not
// wait for the keeper's answer. If the keeper does not read its channel, and
// the channel is full, no request may wait for space.
func TestCancelledRequestLeavesKeeper(t *testing.T) {
	keeper := NewKeeper()
	keeperEnd(t, keeper)
	l := keeper.service.link.Load()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		_, err := l.ask(ctx, l.channel.TrySend, func(id uint64) ipc.Message {
			return &query.Verify{ID: id, Signed: bytes.Repeat([]byte("a"), 8<<10)}
		})
		if errors.Is(err, ipc.ErrFull) {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if keeper.Verify(t.Context(), auth.Signature{Signed: strings.Repeat("a", 8<<10), Bytes: make([]byte, 32)}) != auth.Unknown {
		t.Error("an answer from a keeper that reads nothing")
	}
	if l.pending.size() != 0 {
		t.Errorf("%d questions are pending", l.pending.size())
	}
}

// TestInvalidVerdict checks that an invalid verdict closes the channel.
func TestInvalidVerdict(t *testing.T) {
	keeper := NewKeeper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "keeper")
	defer f.Close()
	if err := keeper.Connect(fds[1]); err != nil {
		t.Fatal(err)
	}
	answer := make(chan auth.Answer, 1)
	go func() {
		answer <- keeper.Verify(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
	}()
	question := make([]byte, 1000)
	if _, err := f.Read(question); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(append(append([]byte{byte(ipc.KindOf(new(query.Verified)))}, question[1:9]...), byte(query.Outdated)+1)); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got != auth.Unknown {
		t.Errorf("answer %d", got)
	}
	if n, err := f.Read(question); n != 0 && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the channel is open: %d, %v", n, err)
	}
}
