package daemon

import (
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/rpc/tlsconn"
)

// maxPEM limits the files of a certificate and of its key, in bytes.
const maxPEM = 256 << 10

// ReadTLS reads the certificate and the key of this daemon, if the configuration
// has TLSType=tls/s2n. Otherwise it returns nil. The owners of the key file are
// those of the files of token keys: anyone who has the key can pretend to be
// this daemon, and receives the clients' tokens. Errors begin with the names of
// the keys that name the files.
func ReadTLS(enabled bool, paths func() (conf.Certificate, error), user nss.User) (*tlsconn.Server, error) {
	if !enabled {
		return nil, nil
	}
	at, err := paths()
	if err != nil {
		return nil, err
	}
	read := func(path string, rule guard.Rule) (data []byte) {
		if err == nil {
			data, _, err = content.Read(path, rule, maxPEM)
		}
		return data
	}
	owners := append(keyOwners(user), 0)
	chain := read(at.Chain, guard.Rule{Label: "certificate", Owners: owners, AllowLink: true})
	key := read(at.Key, guard.Rule{Label: "key file", Owners: owners, Secret: true,
		Trust: &guard.Trust{Owners: owners, PrivateGroup: nss.PrivateGroup}})
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "TLSType=tls/s2n")
	}
	s, err := tlsconn.NewServer(chain, key)
	return s, errs.Wrap(err, errs.Invalid, "TLSType=tls/s2n: %s and %s", at.Chain, at.Key)
}

// ReadCA returns the TLS for connections to another daemon of the cluster, or
// nil if the configuration has no TLSType=tls/s2n. The file of CAs determines who
// can pretend to be that daemon. SchedUser may own it, as that daemon runs as
// SchedUser.
func ReadCA(c *conf.Cluster) (*tlsconn.Client, error) {
	path, text, err := conf.ReadCA(c)
	if err != nil || !c.SecureRPC {
		return nil, err
	}
	user, err := SchedUser(c.User)
	if err == nil {
		err = CheckFiles([]string{path}, user.UID)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "TLSParameters: ca_cert_file")
	}
	return tlsconn.ReadClient(path, text, false)
}
