package privsep

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/privsep/spawn"
)

// pair is a key with what goes with it, as open files. The parent reads neither: the key goes
// to the keeper as it is, and the others are copied as they are to memory files that
// nobody can change, so that every worker shows exactly what the keeper judged, whatever
// becomes of the files meanwhile.
type pair struct {
	tls          TLS
	seen         string // the files' stamp before they were opened
	key          *os.File
	certificates *os.File
	authorities  *os.File // empty when clients need no certificate
}

func (p *pair) close() {
	for _, f := range []*os.File{p.key, p.certificates, p.authorities} {
		if f != nil {
			f.Close()
		}
	}
}

// again returns p with descriptors of its own.
func (p *pair) again(seen string) (q *pair, err error) {
	q = &pair{tls: p.tls, seen: seen}
	if q.key, err = another(p.key); err == nil {
		q.certificates, err = another(p.certificates)
	}
	if err == nil {
		q.authorities, err = another(p.authorities)
	}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// openOrKeep opens the files that c names. When they are those of before, or, unless strict is set, when
// those that have replaced them can't be used, before stays in use. before may be nil.
func openOrKeep(c Config, who service, before *pair, strict bool) (*pair, error) {
	if err := c.TLS.check(); err != nil {
		return nil, err
	}
	seen := c.TLS.stamp() // before they are opened: what changes while they are read is seen next time
	same := before != nil && before.tls == c.TLS
	if same && before.seen == seen {
		return before.again(seen)
	}
	p, err := openPair(c.TLS, who)
	if err == nil {
		p.seen = seen
		return p, nil
	}
	if !same || strict {
		return nil, err
	}
	sayNotRenewed(c, err)
	return before.again(seen)
}

func sayNotRenewed(c Config, why error) {
	c.Log.Error("renewed certificates are not used, those before them stay", about(errs.HintOf(why), "error", why)...)
}

// another is one more descriptor of f.
func another(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "keep %s open", f.Name())
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// maxCopied is how long a file may be that workers get a copy of, in bytes.
const maxCopied = 1 << 20

// openPair opens the files of t. It is called when the capabilities are dropped already, at the
// start as well: what can be read then can be read again when it was renewed.
func openPair(t TLS, who service) (*pair, error) {
	p := &pair{tls: t}
	if err := p.open(who); err != nil {
		p.close()
		if errs.KindOf(err) == errs.NotFound {
			err = errs.New(errs.NotFound, "%v", err).WithHint("put it there, or name another one in TLSParameters=: restd_cert_file, restd_cert_key_file, restd_ca_file")
		}
		return nil, err
	}
	return p, nil
}

func (p *pair) open(who service) (err error) {
	if p.key, err = openKey(p.tls.Key, who); err != nil {
		return err
	}
	if p.certificates, err = sealedCopy(p.tls.Certificate, guard.Rule{What: "certificate file", Links: true}); err != nil {
		return err
	}
	var trust *guard.Trust
	if who.root {
		// Whoever can write here decides which clients come in.
		trust = &guard.Trust{Owners: []uint32{who.schedUID}, Private: become.PrivateGroup}
	}
	p.authorities, err = sealedCopy(p.tls.ClientCA, guard.Rule{What: "file of clients' authorities", Links: true, Trust: trust})
	return err
}

// refused is the keeper's err about what it was given of t.
func (t TLS) refused(err error) error {
	e := &errs.Error{Kind: errs.KindOf(err), Message: fmt.Sprintf("key file %s, certificate file %s", t.Key, t.Certificate), Err: err}
	if e.Kind == errs.Invalid {
		e.Hint = fmt.Sprintf("openssl pkey -in %s -pubout; openssl x509 -in %s -noout -pubkey  # print the same: one key (RSA of 2048 to 8192 bits, ECDSA, Ed25519) "+
			"without a passphrase, and in a file of their own certificates alone, the server's first", guard.Quote(t.Key), guard.Quote(t.Certificate))
	}
	return e
}

// openKey opens a private key that root, SchedUser or, after a start as somebody else, he himself
// owns, and that no worker can read.
func openKey(path string, who service) (*os.File, error) {
	owners := []uint32{0, who.schedUID}
	if !who.root {
		owners = append([]uint32{uint32(os.Geteuid())}, owners...)
	}
	f, _, err := guard.Open(path, guard.Rule{What: "key file", Secret: true, Owners: slices.Compact(owners)})
	if errs.KindOf(err) == errs.Denied {
		hint := "chown root " + guard.Quote(path) + "  # the gateway gives up the rights to read what belongs to others"
		if !who.root {
			hint = fmt.Sprintf("id -un  # give %s a key and a certificate of his own, or start as root with -u, which keeps them from workers", who.Name)
		}
		return nil, errs.New(errs.Denied, "%v", err).WithHint("%s", hint)
	}
	if err != nil || !who.root {
		return f, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, errs.Wrap(err, errs.Internal, "key file %s", path)
	}
	if st.Uid == who.UID && who.UID != 0 || st.Gid == who.GID && st.Mode&0o040 != 0 {
		f.Close()
		return nil, errs.New(errs.Invalid, "key file %s: %s, who serves, can read it", path, who.Name).
			WithHint("chown root:root %[1]s; chmod 0600 %[1]s", guard.Quote(path))
	}
	return f, nil
}

// sealedCopy is a sealed copy of a file that is no secret; empty for no path. rule may let it be a link, as
// programs that renew certificates make them.
func sealedCopy(path string, rule guard.Rule) (*os.File, error) {
	if path == "" {
		return spawn.SealedCopy(strings.NewReader(""), rule.What, unix.MFD_NOEXEC_SEAL)
	}
	f, facts, err := guard.Open(path, rule)
	if errs.KindOf(err) == errs.Denied {
		return nil, errs.New(errs.Denied, "%v", err).WithHint("%s", unlockPublic(path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if facts.Size > maxCopied {
		return nil, errs.New(errs.Invalid, "%s %s: longer than %d bytes", rule.What, path, maxCopied)
	}
	return spawn.SealedCopy(io.LimitReader(f, maxCopied), path, unix.MFD_NOEXEC_SEAL)
}
