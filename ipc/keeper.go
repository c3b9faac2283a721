package ipc

// SecretKeys passes secret keys and certificates to a keeper, as seven open
// files in this order:
//
//   - a private key, in PEM
//   - the certificates of that key, in PEM
//   - the certificate authorities of clients, in PEM
//   - the key for HS256 tokens, as raw bytes
//   - the key set of RS256 tokens
//   - the register of gateway tokens, for reading and appending
//   - the key of auth/slurm credentials
//
// An empty file that can't be written means that there is no such file.
type SecretKeys struct {
	TLS      bool   // there is a private key with certificates
	TLS12    bool   // the key may also sign TLS 1.2 handshakes
	Token    bool   // there is a token key
	Append   bool   // there is a register that this keeper may append to
	Current  bool   // no newer token key exists: a token that does not match this key is forged
	Stamps   bool   // gateway tokens are not exchanged, but the keeper decides about each message
	Provider string // see Tokens
}

func (s *SecretKeys) Walk(w *Walker) {
	w.Fields(&s.TLS, &s.TLS12, &s.Token, &s.Append, &s.Current, &s.Stamps)
	w.Text(maxPath, &s.Provider)
}

// KeeperChannels gives the keeper its ends of two channels: to the parent, and to the
// resolver. The dispatcher has no part in them: it must choose neither as whom a
// process runs, nor who is a member of a group.
type KeeperChannels struct{ NoFields }

// KeeperChannel gives a process its end of a channel between the keeper and the
// resolver, or between the keeper and a process that gets the credentials of a user.
// Client stands for this user, for whom the keeper has vouched; it is 0 for the resolver.
type KeeperChannel struct{ Client uint64 }

func (k *KeeperChannel) Walk(w *Walker) { w.Fields(&k.Client) }

// Vouch reports that the keeper has verified a token of a user. For a minute, the
// parent starts processes of this user.
type Vouch struct {
	Client   uint64 // a random number that stands for the user in StartProcess, so that no worker can guess it; an odd one is for a process that gets credentials, an even one for one that reads output
	UID, GID uint32
	Groups   []uint32 // supplementary
}

func (v *Vouch) Walk(w *Walker) {
	w.Fields(&v.Client, &v.UID, &v.GID)
	List(w, &v.Groups, maxGroups, 4, func(gid *uint32) { w.Fields(gid) })
}

// Vouched answers a Vouch with its number, or with 0 if no process may run as this
// user.
type Vouched struct{ Client uint64 }

func (v *Vouched) Walk(w *Walker) { w.Fields(&v.Client) }

// KeysResult reports whether a process uses the keys that it has received. The
// keeper sends KeysResult as the answer to SecretKeys, and a worker as the
// answer to Keys.
//
// If OK is not set, Reason says why a key can't be used. If a worker sends
// KeysResult, this key is the key set. If the keeper sends KeysResult, this key
// is the token key if Token is set, and otherwise the private key. With OK, Token
// says that the keeper has a token key.
type KeysResult struct {
	OK     bool
	Token  bool
	Reason string // "" when OK
}

func (k *KeysResult) Walk(w *Walker) {
	w.Fields(&k.OK, &k.Token)
	w.Text(MaxReason, &k.Reason)
}
