package ipc

// TokenKeyFD brings the keeper the key of HS256 tokens, an open file whose bytes are the key. It is answered
// with Kept of that number, which is one of the same row of numbers as KeyFD's.
type TokenKeyFD struct {
	Number   uint32
	Followed bool // a new key in the file's place will be noticed; else a signature that is not this key's may be the new one's
}

func (k *TokenKeyFD) Walk(w *Walker) { w.Fields(&k.Number, &k.Followed) }

// JWKSFD brings a worker the public keys of RS256 tokens: a sealed copy of a JSON Web Key Set, read by
// position. It replaces the one before; an empty one stands for none.
type JWKSFD struct {
	Followed bool // as TokenKeyFD's
}

func (j *JWKSFD) Walk(w *Walker) { w.Fields(&j.Followed) }

// KeyChanged tells a worker that what it remembers of HS256 tokens was said of another key.
type KeyChanged struct{}

func (*KeyChanged) Walk(*Walker) {}
