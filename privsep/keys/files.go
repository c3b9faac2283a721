package keys

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/privsep/spawn"
)

// maxCopySize is the maximum size, in bytes, of a file that is copied for
// workers.
const maxCopySize = 1 << 20

// openTokenKey opens the key of HS256 tokens, or that of credentials, which the
// keeper can do without.
func (o Options) openTokenKey(path string) (*os.File, error) {
	rule := o.tokenRule("key file")
	if rule.Secret = true; path == "" {
		return sealedCopy(path, rule)
	}
	if o.Root {
		rule.Restrict = o.Tokens.ShareCommand
	}
	f, _, err := guard.Open(path, rule)
	// Without root, workers run as the parent's user, and could read every key that
	// the parent can read. The command does not change the owner of the key's
	// directory, which may be StateSaveLocation, to which slurmctld writes.
	if errs.KindOf(err) == errs.Denied && o.Root && o.Tokens.RootCanRead {
		err = errs.New(errs.Denied, "%v", err).WithHint("%s", guard.EnterSecretCommand(path, ":root")+o.Tokens.ShareCommand+"  # lets SchedUser, and root without capabilities, read the key; then the gateway uses it")
	}
	// If workers could read the key, an attacker who compromised a worker could
	// impersonate any user. The owner need not be checked here. The rule admits
	// only SchedUser and root as owners, and workers can run as these users
	// only with disable_user_check, which the administrator sets explicitly.
	return o.refuseReadable(f, err, "the group of the serving user", false, o.Tokens.ShareCommand)
}

// openRegister opens the register of gateway tokens, so that the keeper can append
// to it. If that is not possible, the keeper logs a warning and refuses to change the
// register. There may be a new file at any time, so each generation opens it again.
func (o Options) openRegister() []*os.File {
	rule := o.tokenRule("register of gateway tokens")
	rule.Owners, rule.OpenFlags = append(rule.Trust.Owners, 0), os.O_RDWR|os.O_APPEND
	f, _, err := guard.Open(o.Tokens.Register, rule)
	if err != nil {
		return nil
	}
	return []*os.File{f}
}

// openCertificate returns a sealed copy of the certificates.
func (o Options) openCertificate(path string) (*os.File, error) {
	return sealedCopy(path, guard.Rule{Label: "certificate file", AllowLink: true})
}

// openAuthorities returns a sealed copy of the certificate authorities for
// clients.
func (o Options) openAuthorities(path string) (*os.File, error) {
	return sealedCopy(path, o.authoritiesRule())
}

// openKeySet returns a sealed copy of the key set of RS256 tokens.
func (o Options) openKeySet(path string) (*os.File, error) {
	return sealedCopy(path, o.tokenRule("key set"))
}

// openPrivateKey opens the private key, which no worker can read.
func (o Options) openPrivateKey(path string) (*os.File, error) {
	if err := checkTLS(o.TLS); err != nil {
		return nil, err
	}
	f, _, err := guard.Open(path, o.secretRule())
	if errs.KindOf(err) == errs.Denied {
		hint := "chown root " + guard.Quote(path) + "  # the gateway gives up the privilege to read other users' files"
		if !o.Root {
			hint = fmt.Sprintf("id -un  # give %s a key and a certificate of its own, or start as root with -u, which keeps them from workers", o.Worker.Name)
		}
		return nil, errs.New(errs.Denied, "%v", err).WithHint("%s", hint)
	}
	return o.refuseReadable(f, err, "the serving user", true, fmt.Sprintf("chown root:root %[1]s; chmod 0600 %[1]s", guard.Quote(path)))
}

// explainPairRefusal adds the names of the files to err, which is the keeper's
// reason for refusing the private key or its certificates. If the files are
// invalid, it also adds a hint.
func (o Options) explainPairRefusal(err error) error {
	e := &errs.Error{Kind: errs.KindOf(err), Message: fmt.Sprintf("key file %s, certificate file %s", o.TLS.Key, o.TLS.Certificate), Err: err}
	if e.Kind == errs.Invalid {
		e.Hint = fmt.Sprintf("openssl pkey -in %s -pubout; openssl x509 -in %s -noout -pubkey  # must print the same key (RSA of 2048 to 8192 bits, ECDSA or Ed25519); "+
			"the key must have no passphrase, and the certificate file must contain only certificates, the server's first", guard.Quote(o.TLS.Key), guard.Quote(o.TLS.Certificate))
	}
	return e
}

// refuseReadable returns f, a secret key, and err. If root started the gateway and
// workers can read f as members of its group or, if asOwner is true, as its
// owner, refuseReadable closes f and returns an error. In the error, reader is
// the account that can read f.
func (o Options) refuseReadable(f *os.File, err error, reader string, asOwner bool, hint string) (*os.File, error) {
	if err != nil || !o.Root {
		return f, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	switch {
	case err != nil:
		err = errs.Wrap(err, errs.Internal, "key file %s", f.Name())
	case asOwner && st.Uid == o.Worker.UID && o.Worker.UID != 0, st.Gid == o.Worker.GID && st.Mode&0o040 != 0:
		err = errs.New(errs.Invalid, "key file %s: %s %s can read it", f.Name(), reader, o.Worker.Name).WithHint("%s", hint)
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

// sealedCopy returns a sealed copy of a public file. If path is empty, the copy
// is empty, too.
func sealedCopy(path string, rule guard.Rule) (*os.File, error) {
	if path == "" {
		return spawn.SealedCopy(strings.NewReader(""), rule.Label, unix.MFD_NOEXEC_SEAL)
	}
	f, facts, err := guard.Open(path, rule)
	if errs.KindOf(err) == errs.Denied {
		return nil, errs.New(errs.Denied, "%v", err).WithHint("%s", unlockPublicCommand(path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if facts.Size > maxCopySize {
		return nil, errs.New(errs.Invalid, "%s %s: longer than %d bytes", rule.Label, path, maxCopySize)
	}
	return spawn.SealedCopy(io.LimitReader(f, maxCopySize), path, unix.MFD_NOEXEC_SEAL)
}
