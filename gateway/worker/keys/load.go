package keys

import (
	"os"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Load loads the files that the dispatcher has sent: the certificates, the CAs
// for client certificates, and the public keys of tokens. It closes their
// descriptors, and returns the answer for the dispatcher.
func (k *Keys) Load(m *work.Keys, fds []int) *ipc.KeysResult {
	var files []*os.File
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "keys")
		defer f.Close()
		files = append(files, f)
	}
	k.loadTLS(m, files[0], files[1])
	if err := k.loadTokenKeys(files[2], m.Current); err != nil {
		return &ipc.KeysResult{Token: true, Reason: ipc.TruncateReason(err.Error())}
	}
	return &ipc.KeysResult{OK: true}
}
