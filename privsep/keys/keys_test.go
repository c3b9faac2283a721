package keys

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// site is a directory with the files of all keys.
type site struct {
	t   *testing.T
	log *strings.Builder
	Options
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, 0o755))
	at := func(name string) string { return filepath.Join(dir, name) }
	s := &site{t: t, log: new(strings.Builder)}
	s.Options = Options{HTTPS: true, JWT: true, Root: os.Geteuid() == 0, Worker: security.Identity{Name: "worker", UID: 65534, GID: 65534},
		SchedUID: uint32(os.Geteuid()), Log: slog.New(slog.NewTextHandler(s.log, nil)),
		Secrets: ipc.Secrets{TLS: ipc.TLS{Key: at("key.pem"), Certificate: at("cert.pem"), ClientCA: at("ca.pem")}, Tokens: ipc.Tokens{Key: at("jwt.key"), JWKS: at("jwks.json")}}}
	for path, text := range map[string]string{s.TLS.Key: "key", s.TLS.Certificate: "certificates", s.TLS.ClientCA: "authorities", s.Tokens.Key: "token key", s.Tokens.JWKS: "set"} {
		s.put(path, text)
	}
	return s
}

// put replaces a file.
func (s *site) put(path, text string) {
	s.t.Helper()
	must(s.t, os.WriteFile(path+".new", []byte(text), 0o600))
	must(s.t, os.Rename(path+".new", path))
}

// open opens the keys. They are closed at the end of the test.
func (s *site) open(previous *Keys, requireNewCerts bool) *Keys {
	s.t.Helper()
	k, err := Open(s.Options, previous, requireNewCerts)
	must(s.t, err)
	s.t.Cleanup(func() { k.Close(new(Keys)) })
	return k
}

// texts returns the contents of the files that k provides for the keeper and
// for a worker.
func texts(t *testing.T, k *Keys) (keeper, worker string) {
	t.Helper()
	_, secret := k.KeeperMessage()
	_, public := k.WorkerMessage()
	read := func(fds []int) string {
		var list []string
		for _, fd := range fds {
			text := make([]byte, 100)
			n, err := unix.Pread(fd, text, 0)
			must(t, err)
			list = append(list, string(text[:n]))
		}
		return strings.Join(list, "|")
	}
	return read(secret[:5]), read(public) // without the register, see TestRegister
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	allSecret = "key|certificates|authorities|token key|set"
	allPublic = "certificates|authorities|set"
)

// TestRecipients checks that the keeper gets all files except the key set, and
// that a worker gets only public files.
func TestRecipients(t *testing.T) {
	s := newSite(t)
	k := s.open(new(Keys), true)
	if keeper, worker := texts(t, k); keeper != allSecret || worker != allPublic {
		t.Errorf("the keeper gets %q, a worker %q", keeper, worker)
	}
	s.HTTPS, s.JWT = false, false
	if keeper, worker := texts(t, s.open(k, true)); keeper != "||||" || worker != "||" {
		t.Errorf("without https:// and tokens the keeper gets %q, a worker %q", keeper, worker)
	}
}

// TestSuccession checks that the next generation uses new files, and keeps old
// files if the new ones can't be used.
func TestSuccession(t *testing.T) {
	tests := []struct {
		name            string
		change          func(s *site)
		requireNewCerts bool
		keeper, worker  string
		err             string
		logs            string
	}{
		{"nothing", func(*site) {}, true, allSecret, allPublic, "", ""},
		{"all", func(s *site) {
			for _, path := range []string{s.TLS.Key, s.TLS.Certificate, s.TLS.ClientCA, s.Tokens.Key, s.Tokens.JWKS} {
				s.put(path, "new")
			}
		}, true, "new|new|new|new|new", "new|new|new", "", ""},
		{"a certificate is gone", func(s *site) { must(s.t, os.Remove(s.TLS.Certificate)) }, false, allSecret, allPublic, "", "new certificate rejected"},
		{"… at a SIGHUP", func(s *site) { must(s.t, os.Remove(s.TLS.Certificate)) }, true, "", "", "cert.pem", ""},
		{"… and another one is named", func(s *site) { s.TLS.Certificate += ".other" }, false, "", "", "cert.pem.other", ""},
		{"the key lies open", func(s *site) { must(s.t, os.Chmod(s.TLS.Key, 0o644)) }, false, allSecret, allPublic, "", "lets other users access it"},
		{"the key of tokens is gone", func(s *site) { must(s.t, os.Remove(s.Tokens.Key)) }, true, allSecret, allPublic, "", "new key of HS256 tokens rejected"},
		{"the key of tokens lies open", func(s *site) { must(s.t, os.Chmod(s.Tokens.Key, 0o644)) }, true, allSecret, allPublic, "", "lets other users access it"},
		{"another key of tokens lies open", func(s *site) {
			s.Tokens.Key += ".other"
			s.put(s.Tokens.Key, "new")
			must(s.t, os.Chmod(s.Tokens.Key, 0o644))
		}, true, "", "", "lets other users access it", ""},
		{"another key set is not there", func(s *site) { s.Tokens.JWKS += ".other" }, true, "key|certificates|authorities|token key|", "certificates|authorities|", "", "no key set of RS256 tokens"},
		{"the key set is too long", func(s *site) { s.put(s.Tokens.JWKS, strings.Repeat(" ", maxCopySize+1)) }, true, allSecret, allPublic, "", "longer than"},
		{"no tokens are served", func(s *site) { s.JWT = false }, true, "key|certificates|authorities||", "certificates|authorities|", "", ""},
		{"… and their key lies open", func(s *site) { s.JWT = false; must(s.t, os.Chmod(s.Tokens.Key, 0o644)) }, true, "", "", "lets other users access it", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			previous := s.open(new(Keys), true)
			s.t = t
			tt.change(s)
			k, err := Open(s.Options, previous, tt.requireNewCerts)
			defer func() { k.Close(previous) }()
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				return
			}
			must(t, err)
			if keeper, worker := texts(t, k); keeper != tt.keeper || worker != tt.worker {
				t.Errorf("the keeper gets %q, a worker %q; want %q, %q", keeper, worker, tt.keeper, tt.worker)
			}
			if log := s.log.String(); !strings.Contains(log, tt.logs) || tt.logs == "" && log != "" {
				t.Errorf("logged %q, want %q", log, tt.logs)
			}
		})
	}
}

// TestRejectedAgain checks that a SIGHUP fails if the new certificate can't be
// used, also if the gateway noticed that before the SIGHUP.
func TestRejectedAgain(t *testing.T) {
	s := newSite(t)
	current := s.open(new(Keys), true)
	must(t, os.Remove(s.TLS.Certificate))
	noticed := s.open(current, false)
	again := s.open(noticed, false)
	if n := strings.Count(s.log.String(), "new certificate rejected"); n != 1 {
		t.Errorf("the certificate was rejected %d times:\n%s", n, s.log.String())
	}
	if _, err := Open(s.Options, again, true); err == nil || !strings.Contains(err.Error(), "cert.pem") {
		t.Errorf("a SIGHUP with a rejected certificate: %v", err)
	}
	s.put(s.TLS.Certificate, "new")
	if _, worker := texts(t, s.open(again, true)); !strings.HasPrefix(worker, "new|") {
		t.Errorf("a worker gets %q", worker)
	}
}

// TestRefused checks that if the keeper refuses new keys, it gets the previous
// keys instead. If it refuses those, too, they must not be offered again.
func TestRefused(t *testing.T) {
	no := errors.New("no key")
	t.Run("at the start", func(t *testing.T) {
		s := newSite(t)
		for _, token := range []bool{true, false} {
			err := s.open(new(Keys), true).HandleRefusal(token, no, new(Keys), true)
			if err == nil || token && !strings.Contains(errs.HintOf(err), "put the key of the daemons there") {
				t.Errorf("token %t: %v, hint %q", token, err, errs.HintOf(err))
			}
		}
	})
	t.Run("a certificate", func(t *testing.T) {
		s := newSite(t)
		previous := s.open(new(Keys), true)
		s.put(s.TLS.Certificate, "new")
		k := s.open(previous, false)
		must(t, k.HandleRefusal(false, no, previous, false))
		if keeper, worker := texts(t, k); keeper != allSecret || worker != allPublic {
			t.Errorf("the keeper gets %q, a worker %q", keeper, worker)
		}
		if err := k.HandleRefusal(false, no, previous, false); err == nil {
			t.Error("it is offered for ever")
		}
	})
	t.Run("a key of tokens", func(t *testing.T) {
		s := newSite(t)
		previous := s.open(new(Keys), true)
		s.put(s.Tokens.Key, "new")
		k := s.open(previous, false)
		for i, want := range []string{allSecret, "key|certificates|authorities||set"} {
			must(t, k.HandleRefusal(true, no, previous, false))
			if keeper, _ := texts(t, k); keeper != want {
				t.Errorf("after %d refusals the keeper gets %q, want %q", i+1, keeper, want)
			}
		}
		if err := k.HandleRefusal(true, no, previous, false); err == nil {
			t.Error("it is offered for ever")
		}
	})
}

// TestClose checks that generations share open files, and that each file is
// closed together with the last generation that uses it.
func TestClose(t *testing.T) {
	s := newSite(t)
	previous := s.open(new(Keys), true)
	s.put(s.Tokens.Key, "refused")
	k := s.open(previous, false)
	refused := k.tokenKey.files[0]
	must(t, k.HandleRefusal(true, errors.New("no key"), previous, false))
	k.Close(previous) // the generation has failed
	if keeper, worker := texts(t, previous); keeper != allSecret || worker != allPublic {
		t.Errorf("of the keys in use the keeper gets %q, a worker %q", keeper, worker)
	}
	if err := refused.Close(); err == nil {
		t.Error("the file that the keeper has refused was open")
	}
	s.put(s.TLS.Certificate, "new")
	s.put(s.Tokens.Key, "token key")
	next, old := s.open(previous, true), previous.pair.files[1]
	previous.Close(next) // the generation has replaced it
	if keeper, worker := texts(t, next); keeper != "key|new|authorities|token key|set" || worker != "new|authorities|set" {
		t.Errorf("of the next keys the keeper gets %q, a worker %q", keeper, worker)
	}
	if err := old.Close(); err == nil {
		t.Error("the certificate that was replaced was open")
	}
}

// TestRest checks that IsSettled returns false just after a write to a token
// key, because the file may be incomplete.
func TestRest(t *testing.T) {
	s := newSite(t)
	k := s.open(new(Keys), true)
	if s.put(s.TLS.Certificate, "new"); !k.IsSettled(1e12) {
		t.Error("half of a certificate is none")
	}
	if s.put(s.Tokens.Key, "new"); k.IsSettled(1e12) || !k.IsSettled(0) {
		t.Error("the key of tokens was written a moment ago")
	}
}

// TestSigningKey checks that the keeper gets the key of credentials with that of tokens,
// or neither of them, and that a new one is noticed and, if it can't be used, replaced by
// the old one.
func TestSigningKey(t *testing.T) {
	s := newSite(t)
	s.Tokens.Signing = filepath.Join(filepath.Dir(s.Tokens.Key), "slurm.key")
	given := func(k *Keys) string {
		m, fds := k.KeeperMessage()
		text := make([]byte, 100)
		n, err := unix.Pread(fds[6], text, 0)
		must(t, err)
		if !m.Stamps || len(fds) != 7 {
			t.Errorf("%d files, and gateway tokens are exchanged: %v", len(fds), !m.Stamps)
		}
		keeper, _ := texts(t, k)
		return fmt.Sprint(m.Token, " ", keeper, " ", string(text[:n]))
	}
	const without, with = "false key|certificates|authorities||set ", "true key|certificates|authorities|token key|set slurm"
	if got := given(s.open(new(Keys), true)); got != without {
		t.Errorf("a key that is missing: %s", got)
	}
	s.put(s.Tokens.Signing, "slurm key")
	first := s.open(new(Keys), true)
	if got := given(first); got != with+" key" {
		t.Errorf("a key: %s", got)
	}
	s.put(s.Tokens.Signing, "slurm new")
	if Stamp(s.Secrets) == first.Stamp {
		t.Error("a new key is not noticed")
	}
	if got := given(s.open(first, true)); got != with+" new" {
		t.Errorf("a new key: %s", got)
	}
	must(t, os.Chmod(s.Tokens.Signing, 0o644))
	if got := given(s.open(first, true)); got != with+" key" {
		t.Errorf("a key that others can read: %s", got)
	}
	if err := CheckFiles(s.Options); err == nil || !strings.Contains(err.Error(), "slurm.key") {
		t.Errorf("at a start with a key that others can read: %v", err)
	}
}

// TestRegister checks that the keeper gets the register of gateway tokens for reading
// and appending, that one which others may write is not given to it, and that a
// missing one is no error.
func TestRegister(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(filepath.Dir(s.Tokens.Key), "register")
	s.Tokens.Register = path
	for _, tt := range []struct {
		name  string
		mode  os.FileMode // 0: there is none
		given bool
	}{{"none", 0, false}, {"one", 0o644, true}, {"others may write it", 0o666, false}, {"replaced", 0o600, true}} {
		if tt.mode != 0 {
			s.put(path, "# "+tt.name+"\n")
			must(t, os.Chmod(path, tt.mode))
		}
		m, fds := s.open(new(Keys), false).KeeperMessage()
		flags, err := unix.FcntlInt(uintptr(fds[5]), unix.F_GETFL, 0)
		must(t, err)
		if can := flags&unix.O_ACCMODE == unix.O_RDWR && flags&unix.O_APPEND != 0; m.Append != tt.given || can != tt.given {
			t.Errorf("%s: given %v, with the flags %#x", tt.name, m.Append, flags)
		}
		if !tt.given {
			continue
		}
		if _, err := unix.Write(fds[5], []byte("added\n")); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "# "+tt.name+"\nadded\n" {
			t.Errorf("%s: %v, %q", tt.name, err, text)
		}
	}
}

// TestNeededKey checks that with a register of gateway tokens the gateway does not
// start without the key of tokens, and that the error says why. Later, the lack of
// the key must not keep other keys from being used.
func TestNeededKey(t *testing.T) {
	s := newSite(t)
	s.Tokens.Register = filepath.Join(filepath.Dir(s.Tokens.Key), "register")
	first := s.open(new(Keys), true)
	must(t, os.Remove(s.Tokens.Key))
	k, err := Open(s.Options, new(Keys), true)
	k.Close(new(Keys))
	if err == nil || !strings.Contains(err.Error(), "gateway tokens can't be accepted") || !strings.Contains(err.Error(), s.Tokens.Key+": no such file") || errs.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, errs.HintOf(err))
	}
	s.Tokens.Key += ".other"
	s.open(first, true)
}

// TestOpenKeyHint checks that the hint about a key that others can read is the
// command after which the gateway and the daemons can read it.
func TestOpenKeyHint(t *testing.T) {
	s := newSite(t)
	must(t, os.Chmod(s.Tokens.Key, 0o444))
	for command, want := range map[string]string{"chown root:7 k": "chown root:7 k", "": "chmod 0600 " + s.Tokens.Key} {
		s.Tokens.ShareCommand, s.Root = command, command != ""
		if err := CheckFiles(s.Options); errs.HintOf(err) != want {
			t.Errorf("%v, hint %q, want %q", err, errs.HintOf(err), want)
		}
	}
}
