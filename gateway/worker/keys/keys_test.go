package keys

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/auth"
	"schedrestd/gateway/worker/broker"
	"schedrestd/ipc"
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
func tokensWithKeys(t *testing.T, text string, followed bool) *Keys {
	t.Helper()
	tokens := New()
	must(t, tokens.loadTokenKeys(memFile(t, []byte(text)), followed))
	return tokens
}

// TestKeySet checks that a usable key set verifies signatures. A signature that
// does not match the set must count as forged if the parent follows the file.
// If the parent does not, the answer must be Unknown, because there may be a
// newer set. Without a usable set, the answer must also be Unknown.
func TestKeySet(t *testing.T) {
	one, other := signatureOf(t, oneRSA(), "a.b"), signatureOf(t, otherRSA(), "a.b")
	want := func(name string, tokens *Keys, first, second auth.Answer) {
		t.Helper()
		for i, s := range []auth.Signature{one, other} {
			if got := tokens.authenticator.RS256(t.Context(), s); got != []auth.Answer{first, second}[i] {
				t.Errorf("%s: answer %d to key %d", name, got, i+1)
			}
		}
	}
	want("no set", New(), auth.Unknown, auth.Unknown)
	want("followed", tokensWithKeys(t, setOf(oneRSA()), true), auth.Good, auth.Bad)
	retired := tokensWithKeys(t, setOf(oneRSA()), true)
	retired.Retire()
	want("retired", retired, auth.Good, auth.Unknown)
	want("not followed", tokensWithKeys(t, setOf(oneRSA()), false), auth.Good, auth.Unknown)
	want("another set", tokensWithKeys(t, setOf(otherRSA()), true), auth.Bad, auth.Good)
	want("an empty file", tokensWithKeys(t, "", true), auth.Unknown, auth.Unknown)
	for _, broken := range []string{"no set", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`} {
		if New().loadTokenKeys(memFile(t, []byte(broken)), true) == nil {
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
			k := New()
			var fds []int
			for _, text := range tt.files {
				fd, err := unix.Dup(int(memFile(t, []byte(text)).Fd()))
				must(t, err)
				fds = append(fds, fd)
			}
			if answer := k.Load(&tt.keys, fds); !answer.OK {
				t.Errorf("refused: %s", answer.Reason)
			}
			for i, fd := range fds {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
					t.Errorf("file %d is still open: %v", i, err)
				}
			}
			if served := k.TLS() != nil; served != tt.tls {
				t.Errorf("TLS is served: %t", served)
			}
			if got := k.authenticator.RS256(t.Context(), one); got != tt.good {
				t.Errorf("answer %d to its own signature", got)
			}
			if got := k.authenticator.RS256(t.Context(), other); got != tt.foreign {
				t.Errorf("answer %d to another key's", got)
			}
		})
	}
}

// keeperEnd connects client to a new channel, and returns the keeper's end.
func keeperEnd(t *testing.T, client *broker.Keeper) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	must(t, client.Connect(fd))
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
