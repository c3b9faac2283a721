package auth

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

func TestLoadKey(t *testing.T) {
	self := uint32(os.Geteuid())
	random := strings.Repeat("0123456789abcdef", maxKey/16+1)
	const make32 = "(umask 077; head -c 32 /dev/urandom >"
	tests := []struct {
		name   string
		text   string
		mode   os.FileMode
		owners []uint32
		want   string // part of the error; "" if the key is accepted
		hint   string // beginning of the command, up to the path
	}{
		{name: "as the guide makes it", text: random[:32], mode: 0o600},
		{name: "read-only", text: random[:64], mode: 0o400, owners: []uint32{self}},
		{name: "its group may read it", text: random[:32], mode: 0o640},
		{name: "the longest", text: random[:maxKey], mode: 0o600},
		{name: "a text with its line end", text: random[:31] + "\n", mode: 0o600},
		{name: "a private key in PEM", text: "-----BEGIN PRIVATE KEY-----\n" + random[:64] + "\n-----END PRIVATE KEY-----\n", mode: 0o600},
		{name: "zero bytes within", text: "\x00\x00" + random[:30], mode: 0o600},
		{name: "31 bytes", text: random[:31], mode: 0o600, want: "31 bytes; HS256 needs at least 32", hint: make32},
		{name: "empty", mode: 0o600, want: "0 bytes", hint: make32},
		{name: "too long", text: random[:maxKey+1], mode: 0o600, want: "longer than", hint: make32},
		{name: "a public key", text: "\n-----BEGIN PUBLIC KEY-----\n" + random[:64], mode: 0o600, want: "not secret", hint: make32},
		{name: "a public key of PKCS 1", text: "-----BEGIN RSA PUBLIC KEY-----\n" + random[:64], mode: 0o600, want: "not secret", hint: make32},
		{name: "a certificate", text: "-----BEGIN CERTIFICATE-----\n" + random[:64], mode: 0o600, want: "not secret", hint: make32},
		{name: "a key of OpenSSH", text: "ssh-rsa " + random[:64], mode: 0o600, want: "not secret", hint: make32},
		{name: "a key set", text: `{"keys": [{"kty": "RSA", "e": "AQAB"}]}`, mode: 0o600, want: "use jwks= for it", hint: make32},
		{name: "what a crash left", text: strings.Repeat("\x00", 32), mode: 0o600, want: "the same byte 32 times", hint: make32},
		{name: "others may read", text: random[:32], mode: 0o644, want: "mode 0644", hint: "chmod 0600 "},
		{name: "others may execute", text: random[:32], mode: 0o601, want: "mode 0601", hint: "chmod 0600 "},
		{name: "its group may write it", text: random[:32], mode: 0o660, want: "mode 0660", hint: "chmod 0600 "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jwt key")
			write(t, path, test.text, test.mode)
			key, err := LoadKey(path, trusting(test.owners...))
			if test.want == "" {
				if err != nil || string(key.secret()) != test.text {
					t.Errorf("got %d bytes, %v", len(key.secret()), err)
				}
				return
			}
			refusedFile(t, err, errs.Invalid, path, test.want, test.hint)
			if hint := errs.HintOf(err); test.hint == make32 && !strings.Contains(hint, "all daemons and gateways need the same key") {
				t.Errorf("hint %q", hint)
			}
			if len(test.text) > 30 && strings.Contains(err.Error(), random[:20]) {
				t.Errorf("shows the key: %v", err)
			}
		})
	}
}

// TestLoadKeyUnreadable checks the errors for keys and key sets whose paths are
// not readable files.
func TestLoadKeyUnreadable(t *testing.T) {
	tests := []struct {
		name  string
		build func(t *testing.T, path string)
		kind  errs.Kind
		want  string
		hint  string
	}{
		{"absent", func(*testing.T, string) {}, errs.NotFound, "no such file", ""},
		{"a directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, errs.Invalid, "not a regular file", "ls -ld "},
		{"a link", func(t *testing.T, path string) {
			write(t, path+".real", string(secret), 0o600)
			must(t, os.Symlink(path+".real", path))
		}, errs.Invalid, "a symbolic link", "readlink -f "},
		{"not for this user", func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			write(t, path, string(secret), 0o000)
		}, errs.Denied, "permission denied", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a key")
			test.build(t, path)
			_, err := LoadKey(path, trusting())
			ofKey, ofSet := "(umask 077; head -c 32 /dev/urandom >", "curl --fail --output "
			if test.kind == errs.Denied {
				ofKey, ofSet = fmt.Sprintf("chown %d ", os.Geteuid()), "chmod a+r "
			}
			refusedFile(t, err, test.kind, path, test.want, cmp.Or(test.hint, ofKey))
			_, err = LoadKeySet(path, trusting())
			refusedFile(t, err, test.kind, path, test.want, cmp.Or(test.hint, ofSet))
		})
	}
}

// refusedFile checks the error for a refused file and the command in the
// error's hint. HintOf must find the hint even if the error is wrapped. The
// hint must quote the path.
func refusedFile(t *testing.T, err error, kind errs.Kind, path, reason, command string) {
	t.Helper()
	if errs.KindOf(err) != kind || !strings.Contains(fmt.Sprint(err), reason) || !strings.Contains(fmt.Sprint(err), path) {
		t.Errorf("got %v (%v), want %v because of %q", err, errs.KindOf(err), kind, reason)
	}
	wrapped := fmt.Errorf("start: %w", errs.Wrap(err, kind, "read the configuration"))
	if makes := strings.HasSuffix(command, ">") || strings.HasPrefix(command, "curl"); makes { // these commands create a new file beside path
		path += ".new"
	}
	if hint := errs.HintOf(wrapped); !strings.Contains(hint, command+guard.Quote(path)) {
		t.Errorf("hint %q, want %q and the path quoted", hint, command)
	}
}

// trusting returns a Trust with the given owners. The Trust treats this
// process's group as private to one user. Such groups are usual for home
// directories on systems with umask 002.
func trusting(owners ...uint32) guard.Trust {
	return guard.Trust{Owners: owners, PrivateGroup: func(_, group uint32) bool { return int(group) == os.Getegid() }}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates a file with exactly the given mode, regardless of the umask.
func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
	must(t, os.Chmod(path, mode))
}

// TestLoadKeyOwner checks that a key file is refused if it belongs to an
// untrusted user, because that user knows the key. A key file that belongs to
// root must always be accepted.
func TestLoadKeyOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file away")
	}
	path := filepath.Join(t.TempDir(), "key")
	write(t, path, string(secret), 0o600)
	if _, err := LoadKey(path, trusting(4711)); err != nil {
		t.Errorf("root's: %v", err)
	}
	must(t, os.Chown(path, 4712, 0))
	if _, err := LoadKey(path, trusting(4711)); err == nil || !strings.Contains(errs.HintOf(err), "chown 4711") {
		t.Errorf("another user's: got %v", err)
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	key := testKey(t)
	hidden := struct{ key Key }{key}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, v := range []any{key, &key, hidden, Verifier{Key: key}} {
			text := fmt.Sprintf(verb, v)
			for _, shown := range []string{string(secret), fmt.Sprintf("%x", secret[:4]), "48 49 50 51"} {
				if strings.Contains(text, shown) {
					t.Errorf("%s of %T shows the key", verb, v)
				}
			}
		}
	}
	if got := fmt.Sprint(key); got != "(key)" {
		t.Errorf("got %q", got)
	}
}
