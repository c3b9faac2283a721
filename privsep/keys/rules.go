package keys

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Options names the key files, and the users who may read and write them.
type Options struct {
	ipc.Secrets
	HTTPS    bool              // there is an https:// listener
	JWT      bool              // tokens are served
	Root     bool              // the parent was started as root
	Worker   security.Identity // identity of the workers, which must not read a secret key
	SchedUID uint32
	Log      *slog.Logger
}

// checkTLS returns an error if the certificate or the key is missing from the
// configuration of an https:// listener.
func checkTLS(t ipc.TLS) error {
	if t.Certificate == "" || t.Key == "" {
		return errs.New(errs.Invalid, "https:// needs a certificate and a key").
			WithHint("set TLSParameters=restd_cert_file=…,restd_cert_key_file=… in the configuration")
	}
	return nil
}

// secretRule returns the rule for the private key. The key must belong to root
// or SchedUser. If the gateway was started without root, the key may also
// belong to the user who started it.
func (o Options) secretRule() guard.Rule {
	owners := []uint32{0, o.SchedUID}
	if !o.Root {
		owners = append([]uint32{uint32(os.Geteuid())}, owners...)
	}
	return guard.Rule{Label: "key file", Secret: true, Owners: slices.Compact(owners)}
}

// tokenRule returns the rule for a file with token keys. The file must belong
// to SchedUser or root. Each directory above it must belong to SchedUser, to
// root or, if the gateway was started without root, to the user who started it.
// No other user may write to the file or to these directories.
func (o Options) tokenRule(label string) guard.Rule {
	trust := guard.Trust{Owners: []uint32{o.SchedUID}, PrivateGroup: become.PrivateGroup}
	if !o.Root {
		trust.Owners = append(trust.Owners, uint32(os.Geteuid()))
	}
	return guard.Rule{Label: label, Owners: []uint32{o.SchedUID, 0}, Trust: &trust}
}

// authoritiesRule returns the rule for the file with the certificate
// authorities for clients. This file determines which clients are accepted. So
// if the parent process runs as root, only SchedUser and root may write to it.
func (o Options) authoritiesRule() guard.Rule {
	rule := guard.Rule{Label: "file of clients' authorities", AllowLink: true}
	if o.Root {
		rule.Trust = &guard.Trust{Owners: []uint32{o.SchedUID}, PrivateGroup: become.PrivateGroup}
	}
	return rule
}

// unlockPublicCommand returns a command that lets every user read a key set or
// a certificate.
func unlockPublicCommand(path string) string {
	return guard.EnterCommand(path) + "chmod a+r " + guard.Quote(path)
}

// tokenKeyHint returns a hint about f, which contains no usable token key, or ""
// if the keeper's reason is about the key of credentials (gateway/keeper). The
// daemons have the key too, so no command may replace it here alone.
func tokenKeyHint(f *os.File, reason error) string {
	if strings.Contains(reason.Error(), "key of credentials") {
		return ""
	}
	return "ls -l " + guard.Quote(f.Name()) + "  # put the key of the daemons there; KEYS.md, Change a key, says how to give all of them a new one"
}
