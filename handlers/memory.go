package handlers

import "schedrestd/model"

// Memory is a limit on the memory that stored answers and large bodies occupy.
// Hold reserves n bytes for the credential's user. If this is not possible,
// Hold returns false at once. Release frees n bytes.
type Memory interface {
	Hold(cred model.Credential, n int) bool
	Release(cred model.Credential, n int)
}
