package worker

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

var oneRSA, otherRSA = sync.OnceValue(makeRSA), sync.OnceValue(makeRSA)

func makeRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// setOf returns a key set with one key.
func setOf(key *rsa.PrivateKey) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"keys":[{"kty":"RSA","n":%q,"e":%q}]}`, b64(key.N.Bytes()), b64(big.NewInt(int64(key.E)).Bytes()))
}

// signatureOf returns key's signature of text.
func signatureOf(t *testing.T, key *rsa.PrivateKey, text string) auth.Signature {
	t.Helper()
	digest := sha256.Sum256([]byte(text))
	s, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return auth.Signature{Signed: text, Bytes: s}
}

// tokensWithKeys returns Tokens with the given key set.
func tokensWithKeys(t *testing.T, text string, followed bool) *Tokens {
	t.Helper()
	tokens := NewTokens()
	must(t, tokens.load(memFile(t, []byte(text)), followed))
	return tokens
}

// TestKeySet checks that a usable key set verifies signatures. A signature that
// does not match the set must count as forged if the parent follows the file.
// If the parent does not, the answer must be Unknown, because there may be a
// newer set. Without a usable set, the answer must also be Unknown.
func TestKeySet(t *testing.T) {
	one, other := signatureOf(t, oneRSA(), "a.b"), signatureOf(t, otherRSA(), "a.b")
	want := func(name string, tokens *Tokens, first, second auth.Answer) {
		t.Helper()
		for i, s := range []auth.Signature{one, other} {
			if got := tokens.authenticator.RS256(t.Context(), s); got != []auth.Answer{first, second}[i] {
				t.Errorf("%s: answer %d to key %d", name, got, i+1)
			}
		}
	}
	want("no set", NewTokens(), auth.Unknown, auth.Unknown)
	want("followed", tokensWithKeys(t, setOf(oneRSA()), true), auth.Good, auth.Bad)
	want("not followed", tokensWithKeys(t, setOf(oneRSA()), false), auth.Good, auth.Unknown)
	want("another set", tokensWithKeys(t, setOf(otherRSA()), true), auth.Bad, auth.Good)
	want("an empty file", tokensWithKeys(t, "", true), auth.Unknown, auth.Unknown)
	for _, broken := range []string{"no set", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`} {
		if NewTokens().load(memFile(t, []byte(broken)), true) == nil {
			t.Errorf("%s is used", broken)
		}
	}
}

// TestKeys checks that a worker uses each file for its purpose, and closes it.
func TestKeys(t *testing.T) {
	_, text := selfSigned(t, oneRSA())
	one, other := signatureOf(t, oneRSA(), "a.b"), signatureOf(t, otherRSA(), "a.b")
	for _, tt := range []struct {
		name          string
		keys          work.Keys
		files         [3]string
		tls           bool
		good, foreign auth.Answer
	}{
		{"all", work.Keys{PublicKeys: ipc.PublicKeys{TLS: true, Authorities: true, Current: true}}, [3]string{string(text), string(text), setOf(oneRSA())}, true, auth.Good, auth.Bad},
		{"no TLS", work.Keys{}, [3]string{"", "", setOf(oneRSA())}, false, auth.Good, auth.Unknown},
		{"no key set", work.Keys{PublicKeys: ipc.PublicKeys{TLS: true, Current: true}}, [3]string{string(text)}, true, auth.Unknown, auth.Unknown},
		{"none", work.Keys{PublicKeys: ipc.PublicKeys{Current: true}}, [3]string{}, false, auth.Unknown, auth.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newTestServer(t, work.Setup{}, nil)
			var fds []int
			for _, text := range tt.files {
				fd, err := unix.Dup(int(memFile(t, []byte(text)).Fd()))
				must(t, err)
				fds = append(fds, fd)
			}
			if answer := st.loadKeys(&tt.keys, fds); !answer.OK {
				t.Errorf("refused: %s", answer.Reason)
			}
			for i, fd := range fds {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
					t.Errorf("file %d is still open: %v", i, err)
				}
			}
			if _, err := st.tlsServer.wrap(nil); (err == nil) != tt.tls {
				t.Errorf("TLS is served: %t", err == nil)
			}
			if got := st.tokens.authenticator.RS256(t.Context(), one); got != tt.good {
				t.Errorf("answer %d to its own signature", got)
			}
			if got := st.tokens.authenticator.RS256(t.Context(), other); got != tt.foreign {
				t.Errorf("answer %d to another key's", got)
			}
		})
	}
}

// keeperEnd connects client to a new channel, and returns the keeper's end.
func keeperEnd(t *testing.T, client *keeperClient) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	must(t, client.connect(fd))
	return c
}

// TestKeeperVerifies checks that answers may arrive in any order, and that each
// answer is matched to its question by number.
func TestKeeperVerifies(t *testing.T) {
	tokens := NewTokens()
	mac := bytes.Repeat([]byte{7}, 32)
	ask := func(text string) auth.Answer {
		return tokens.authenticator.HS256(t.Context(), auth.Signature{Signed: text, Bytes: mac})
	}
	if ask("a.b") != auth.Unknown {
		t.Error("an answer without a keeper")
	}
	c := keeperEnd(t, tokens.keeper)
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
		if got := tokens.authenticator.HS256(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, n)}); got != auth.Bad {
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
			tokens := NewTokens()
			c := keeperEnd(t, tokens.keeper)
			answer := make(chan auth.Answer, 1)
			go func() {
				answer <- tokens.authenticator.HS256(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
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
	tokens := NewTokens()
	c := keeperEnd(t, tokens.keeper)
	for range 2 * maxQuestions {
		go func() { _, _ = tokens.keeper.sign(1, []byte("handshake")) }()
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
		if handshakes == maxQuestions-1 { // no more handshakes can be pending
			go func() {
				answer <- tokens.keeper.verify(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
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
	tokens := NewTokens()
	keeperEnd(t, tokens.keeper)
	l := tokens.keeper.link.Load()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		_, err := l.ask(ctx, l.channel.TrySend, nil, func(id uint64) ipc.Message {
			return &query.Verify{ID: id, Signed: bytes.Repeat([]byte("a"), 8<<10)}
		})
		if errors.Is(err, ipc.ErrFull) {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if tokens.keeper.verify(t.Context(), auth.Signature{Signed: strings.Repeat("a", 8<<10), Bytes: make([]byte, 32)}) != auth.Unknown {
		t.Error("an answer from a keeper that reads nothing")
	}
	if len(l.pending.waiting) != 0 {
		t.Errorf("%d questions are pending", len(l.pending.waiting))
	}
}

// TestInvalidVerdict checks that an invalid verdict closes the channel.
func TestInvalidVerdict(t *testing.T) {
	tokens := NewTokens()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "keeper")
	defer f.Close()
	if err := tokens.keeper.connect(fds[1]); err != nil {
		t.Fatal(err)
	}
	answer := make(chan auth.Answer, 1)
	go func() {
		answer <- tokens.authenticator.HS256(t.Context(), auth.Signature{Signed: "a.b", Bytes: make([]byte, 32)})
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
