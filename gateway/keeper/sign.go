package keeper

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/hmackey"
	"schedrestd/ipc/query"
)

// signingKey is the key of auth/slurm: slurm.key, or the default key of slurm.jwks. Anyone
// who has it can act as any user, so it never leaves this process.
type signingKey struct {
	secret []byte
	header []byte // of the credentials that it signs
}

// A signedMessage is the content of a credential. The names are those of auth/slurm
// (create_internal in Slurm's src/plugins/auth/slurm/internal.c, from 23.11 on).
type signedMessage struct {
	Issued  int64  `json:"iat"`
	Expires int64  `json:"exp"`
	Version uint16 `json:"ver"`
	Only    uint32 `json:"ruid"` // only daemons that run as this uid accept it
	Context string `json:"context"`
	Cluster string `json:"cluster"`
	UID     uint32 `json:"uid"`
	GID     uint32 `json:"gid"`
	Host    string `json:"host"`
	Payload []byte `json:"payload"` // rpc/payload
}

// hostname is the short name of this machine, which the daemons show as the host from
// which a job was submitted. The sandbox forbids asking for it later.
var hostname = func() string {
	name, _ := os.Hostname()
	name, _, _ = strings.Cut(name, ".")
	return name
}()

const (
	signedVersion = 40 << 8 // Slurm 23.11; no daemon checks it

	// A credential is valid for signedTime seconds, like Slurm's own. Daemons do not
	// remember credentials: until then an attacker can send the message again.
	signedTime = 60

	minJWK = 16 // bytes; Slurm's limit
)

// readSigningKey reads the key of credentials: raw bytes, or a key set like slurm.jwks. If
// there is none, the parent has sent an empty file without a name, and readSigningKey
// returns nil. The parent looks for "key of credentials" in an error (privsep/keys).
func readSigningKey(f *os.File) (*signingKey, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, hmackey.MaxSize+1))
	if err != nil {
		return nil, errors.New("the key of credentials cannot be read")
	}
	if len(text) == 0 {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Nlink > 0 {
			return nil, errors.New("the key of credentials is empty")
		}
		return nil, nil
	}
	k := &signingKey{secret: text}
	header := map[string]string{"alg": "HS256", "typ": "JWT"}
	if hmackey.IsSet(text) {
		if header["kid"], k.secret, err = defaultKey(text, time.Now()); err != nil {
			return nil, fmt.Errorf("the key of credentials: %w", err)
		}
	} else if err := hmackey.Check(text); err != nil {
		return nil, fmt.Errorf("the key of credentials: %w", err)
	}
	k.header, err = json.Marshal(header)
	return k, err
}

// defaultKey returns the key of a key set with which Slurm signs: the one marked as the
// default or, if none is, the first.
func defaultKey(text []byte, now time.Time) (id string, secret []byte, err error) {
	type key struct {
		ID   string      `json:"kid"`
		Type string      `json:"kty"`
		Alg  string      `json:"alg"`
		K    string      `json:"k"`
		Use  string      `json:"use"`
		Exp  json.Number `json:"exp"`
	}
	var set struct {
		Keys []key `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || len(set.Keys) == 0 {
		return "", nil, errors.New("not a key set like slurm.jwks")
	}
	chosen, defaults := set.Keys[0], 0
	for _, k := range set.Keys {
		if strings.EqualFold(k.Use, "default") {
			chosen = k
			defaults++
		}
	}
	// Slurm decodes both alphabets, with and without padding.
	secret, err = base64.RawURLEncoding.DecodeString(strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(chosen.K))
	expires, expErr := chosen.Exp.Int64()
	switch {
	case defaults > 1:
		return "", nil, errors.New("several keys of the set have use=default")
	case chosen.Exp != "" && expErr != nil:
		return "", nil, errors.New("exp of the set's default key is not a whole number of seconds")
	case chosen.ID == "" || !strings.EqualFold(chosen.Type, "oct") || !strings.EqualFold(chosen.Alg, "HS256"):
		return "", nil, errors.New("the set's default key needs kid, kty=oct and alg=HS256")
	case err != nil || len(secret) < minJWK:
		return "", nil, fmt.Errorf("k of the set's default key is not base64 of at least %d bytes", minJWK)
	case expires != 0 && now.Unix() >= expires:
		return "", nil, errors.New("the set's default key has expired")
	}
	return chosen.ID, secret, nil
}

// sign returns a credential with the ids of a user, which is valid for one message, whose
// hash is in the payload, and for daemons that run as the cluster's user. It expires no
// later than the gateway token, at end. The resolver chooses the group, but never root's.
func (k *signingKey) sign(user *query.Membership, r *register, payload []byte, now, end time.Time) []byte {
	gid := user.GID
	if gid == 0 {
		gid = become.Overflow
	}
	claims, _ := json.Marshal(signedMessage{ // never fails
		Issued: now.Unix(), Expires: min(now.Unix()+signedTime, end.Unix()), Version: signedVersion, Only: r.schedUID, Context: "sack",
		Cluster: r.cluster, UID: user.UID, GID: gid, Host: hostname, Payload: payload,
	})
	return signHS256(k.secret, k.header, claims)
}
