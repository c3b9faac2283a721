package rest

import "schedrestd/model"

// Memory is a limit on the memory that stored answers and large bodies occupy.
// Hold reserves n bytes for the credential's user. If this is not possible,
// Hold returns false at once. Release frees n bytes.
type Memory interface {
	Hold(cred model.Credential, n int) bool
	Release(cred model.Credential, n int)
}

// A reservation is the memory that a part of a request has reserved.
type reservation struct {
	memory Memory // nil for no limit
	cred   model.Credential
	size   int // reserved bytes
}

// hold reserves n more bytes. If this is not possible, it returns false.
func (r *reservation) hold(n int) bool {
	if r.memory == nil {
		return true
	}
	if !r.memory.Hold(r.cred, n) {
		return false
	}
	r.size += n
	return true
}

// release frees n bytes, or the reserved bytes if these are fewer.
func (r *reservation) release(n int) {
	if n = min(n, r.size); n > 0 {
		r.size -= n
		r.memory.Release(r.cred, n)
	}
}
