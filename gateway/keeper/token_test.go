package keeper

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// mac returns the HS256 signature of signed with key.
func mac(key, signed string) (m [32]byte) {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(signed))
	copy(m[:], h.Sum(nil))
	return m
}

// sendToken sends k a key for tokens, but no private key.
func sendToken(t *testing.T, k *keeper, key string, followed bool) *ipc.KeysResult {
	t.Helper()
	return sendKeys(t, k, ipc.SecretKeys{Token: true, Current: followed}, "", "", "", key)
}

func askToken(t *testing.T, c *ipc.Channel, id uint64, signed string, m [32]byte) query.Verdict {
	t.Helper()
	if err := c.Send(&query.Verify{ID: id, Signed: []byte(signed), MAC: m}); err != nil {
		t.Fatal(err)
	}
	answer, err := c.Receive()
	if err != nil {
		t.Fatal(err)
	}
	v := answer.Message.(*query.Verified)
	if v.ID != id {
		t.Errorf("an answer to question %d instead of %d", v.ID, id)
	}
	return v.Verdict
}

var (
	oneKey   = strings.Repeat("1a", 16)
	otherKey = strings.Repeat("2b", 32)
)

// TestVerify checks that only signatures with the keeper's own key are genuine.
// If the parent reloads the key whenever its file changes, other signatures are
// forged. Otherwise they are outdated, because the file may contain another key
// by now.
func TestVerify(t *testing.T) {
	const signed = "head.payload"
	good, bad := mac(oneKey, signed), mac(otherKey, signed)
	var c *ipc.Channel
	want := func(name string, m [32]byte, verdict query.Verdict) {
		t.Helper()
		if got := askToken(t, c, 7, signed, m); got != verdict {
			t.Errorf("%s: verdict %d, want %d", name, got, verdict)
		}
	}
	load := func(key string, followed bool) {
		t.Helper()
		k := newKeeper(nil)
		if a := sendToken(t, k, key, followed); *a != (ipc.KeysResult{OK: true, Token: true}) {
			t.Fatalf("%+v", a)
		}
		c = worker(t, k, 1)
	}
	c = worker(t, newKeeper(nil), 1)
	want("before any key", good, query.NoVerdict)
	want("an empty key's, before any key", mac("", signed), query.NoVerdict)

	load(oneKey, false)
	want("not followed, good", good, query.Genuine)
	want("not followed, another key's", bad, query.Outdated)
	load(oneKey, true)
	want("followed, good", good, query.Genuine)
	want("followed, another key's", bad, query.Forged)
	want("all zeros", [32]byte{}, query.Forged)
	for i := range good {
		m := good
		m[i] ^= 0x80
		want("one bit of another", m, query.Forged)
	}
	if got := askToken(t, c, 8, signed+" ", good); got != query.Forged {
		t.Errorf("signature of another text: verdict %d", got)
	}
	if got := askToken(t, c, 9, "", mac(oneKey, "")); got != query.Genuine {
		t.Errorf("signature of an empty text: verdict %d", got) // the keeper does not decide whether an empty text is a token
	}

	load(otherKey, true)
	want("another keeper's key", good, query.Forged)
	want("another keeper's key, its own signature", bad, query.Genuine)
}

// TestTokenKeys checks which token keys the keeper accepts. auth.TestLoadKey
// checks which ones the daemons accept.
func TestTokenKeys(t *testing.T) {
	tests := []struct {
		name, key, want string
	}{
		{"empty", "", "0 bytes"},
		{"31 bytes", strings.Repeat("k", 31), "31 bytes"},
		{"32 bytes", strings.Repeat("k1", 16), ""},
		{"zero bytes within", "\x00\x00" + strings.Repeat("k1", 15), ""},
		{"longer than a block of the hash", strings.Repeat("k1", 33), ""},
		{"64 KiB", strings.Repeat("k1", 32<<10), ""},
		{"a byte more", strings.Repeat("k1", 32<<10) + "k", "longer than"},
		{"zeros", strings.Repeat("\x00", 32), "the same byte 32 times"}, // the daemons also refuse this key and the following ones
		{"a public key", "-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("k1", 32), "not secret"},
		{"a certificate", "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("k1", 32), "not secret"},
		{"a key set", `{"keys": [{"kty": "RSA", "n": "k1k1", "e": "AQAB"}]}`, "not secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := newKeeper(nil)
			a := sendToken(t, k, tt.key, true)
			if a.OK != (tt.want == "") || !strings.Contains(a.Reason, tt.want) || !a.Token {
				t.Fatalf("%+v, want %q", a, tt.want)
			}
			if len(tt.key) > 4 && tt.want != "" && strings.Contains(a.Reason, tt.key) {
				t.Error("the reason contains the key")
			}
			verdict := askToken(t, worker(t, k, 1), 1, "a.b", mac(tt.key, "a.b"))
			if (verdict == query.Genuine) != a.OK {
				t.Errorf("kept %v, verdict %d", a.OK, verdict)
			}
		})
	}
}

// TestVerifiedSaysNoMore checks that the answer about a forged signature
// contains only the number of the question and the verdict, and nothing about
// the right signature.
func TestVerifiedSaysNoMore(t *testing.T) {
	k := newKeeper(nil)
	sendToken(t, k, oneKey, true)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	serve(t, k, fds[1], 9)
	forged := make([]byte, 32)
	question := append([]byte{byte(ipc.KindOf(new(query.Verify))), 5, 0, 0, 0, 0, 0, 0, 0, 3, 0}, "a.b"...)
	if _, err := unix.Write(fds[0], append(question, forged...)); err != nil {
		t.Fatal(err)
	}
	_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
	answer := make([]byte, 1000)
	n, err := unix.Read(fds[0], answer)
	want := []byte{byte(ipc.KindOf(new(query.Verified))), 5, 0, 0, 0, 0, 0, 0, 0, byte(query.Forged)}
	if err != nil || !bytes.Equal(answer[:n], want) {
		t.Errorf("read %x, %v; want %x", answer[:n], err, want)
	}
}

// TestVerifyTogether checks that each worker gets its own answers if many
// workers ask concurrently.
func TestVerifyTogether(t *testing.T) {
	k := newKeeper(nil)
	sendToken(t, k, oneKey, true)
	var askers sync.WaitGroup
	for i := range uint32(8) {
		c := worker(t, k, i)
		askers.Go(func() {
			for n := range uint64(300) {
				if v := askToken(t, c, n, "a.b", mac("a stranger's", "a.b")); v != query.Forged {
					t.Errorf("a signature with another key: verdict %d", v)
				}
				if v := askToken(t, c, n, "a.b", mac(oneKey, "a.b")); v != query.Genuine {
					t.Errorf("a good signature: verdict %d", v)
				}
			}
		})
	}
	askers.Wait()
}

// TestFloodOfVerify checks that a worker that does not read its answers does
// not delay other workers.
func TestFloodOfVerify(t *testing.T) {
	k := newKeeper(nil)
	sendToken(t, k, oneKey, true)
	mute, other := worker(t, k, 1), worker(t, k, 2)
	long := bytes.Repeat([]byte("x"), 24<<10)
	for i := 0; ; i++ {
		err := mute.TrySend(&query.Verify{ID: uint64(i), Signed: long})
		if err == ipc.ErrFull {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if askToken(t, other, 1, "a.b", mac(oneKey, "a.b")) != query.Genuine {
		t.Error("another worker is not served")
	}
}
