package privsep

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/guard"
)

// tokenFile is the rule for a file with keys of tokens: it is SchedUser's or root's, and so is each directory above, or, after a
// start as somebody else, his own; and nobody else may write there.
func (s service) tokenFile(what string) guard.Rule {
	trust := guard.Trust{Owners: []uint32{s.schedUID}, Private: become.PrivateGroup}
	if !s.root {
		trust.Owners = append(trust.Owners, uint32(os.Geteuid()))
	}
	return guard.Rule{What: what, Owners: []uint32{s.schedUID, 0}, Trust: &trust}
}

// openTokenKey opens the key of HS256 tokens, for the keeper; nil for no path. It is not read here.
func openTokenKey(path string, who service) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	rule := who.tokenFile("key file")
	rule.Secret = true
	f, _, err := guard.Open(path, rule)
	if err != nil || !who.root {
		return f, err
	}
	// With the key, who captures a worker is whom he likes to be. That a worker owns it takes
	// disable_user_check, and was asked for.
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, errs.Wrap(err, errs.Internal, "key file %s", path)
	}
	if st.Gid == who.GID && st.Mode&0o040 != 0 {
		f.Close()
		return nil, errs.New(errs.Invalid, "key file %s: the group of %s, who serves, can read it", path, who.Name).
			WithHint("%s", who.shareTokenKey(path))
	}
	return f, nil
}

// openKeySet is a sealed copy of the key set of RS256 tokens; nil for no path.
func openKeySet(path string, who service) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	return sealedCopy(path, who.tokenFile("key set"))
}

// unlockTokenKey is the command after which a parent that is root can read the key without capabilities, and SchedUser still
// can; "" when there is none. Another parent is not to be made to.
func (s service) unlockTokenKey(path string) string {
	if owner, _, both := s.tokenKeyOwner(); s.root && both {
		return guard.EnterSecret(path, owner) + s.shareTokenKey(path) + "  # for root without capabilities, and for SchedUser; then the gateway uses it"
	}
	return ""
}

// shareTokenKey is the command that gives the key to SchedUser, to root as well if it can, and to no worker.
func (s service) shareTokenKey(path string) string {
	owner, mode, _ := s.tokenKeyOwner()
	return fmt.Sprintf("chown %s %s && chmod %s %[2]s", owner, guard.Quote(path), mode)
}

// tokenKeyOwner is whose the key is to be, as chown has it, and of which mode, for SchedUser to read it, and, if both, root without
// capabilities.
func (s service) tokenKeyOwner() (owner, mode string, both bool) {
	switch {
	case s.schedUID == 0:
		return "root", "0600", true
	case s.schedGID == 0 || s.schedGID == s.GID:
		return fmt.Sprint(s.schedUID), "0600", false
	}
	return fmt.Sprintf("root:%d", s.schedGID), "0440", true
}

// unlockPublic is the command after which everybody can read a key set or certificates.
func unlockPublic(path string) string { return guard.Enter(path) + "chmod a+r " + guard.Quote(path) }

// newTokenKey is the command that makes a key in place of f, which is none. What is long enough to be something else may be needed
// elsewhere, and be named here by a slip: then it is made beside it.
func newTokenKey(f *os.File) string {
	const make = "(umask 077; head -c 32 /dev/urandom >%s)"
	if info, err := f.Stat(); err == nil && info.Size() < 32 {
		return guard.Replace(f.Name(), make)
	}
	return guard.Beside(f.Name(), make) + "  # then jwt_key=" + guard.Quote(f.Name()+".new")
}
