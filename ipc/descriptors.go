package ipc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// DialBatchSize is the number of sockets in one DialedBatch (package work). No
// message carries more descriptors.
const DialBatchSize = 32

// maxFDs is the number of descriptors that the buffer for control messages has
// room for: one more than any row of the protocol table permits, so that
// surplus descriptors are noticed and closed.
const maxFDs = DialBatchSize + 1

var controlSize = unix.CmsgSpace(maxFDs * 4)

// parseFDs returns the descriptors in the control messages oob. It fails if one
// of these messages is not SCM_RIGHTS. Even if it fails, it returns the
// descriptors that it found, and the caller must close them. If they stayed
// open, a compromised worker could fill the parent's descriptor table.
func parseFDs(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, errors.New("has a control message that can't be parsed")
	}
	for i := range list {
		if list[i].Header.Level != unix.SOL_SOCKET || list[i].Header.Type != unix.SCM_RIGHTS || len(list[i].Data)%4 != 0 { // ParseUnixRights would index past the end of half a descriptor
			err = errors.New("has a control message that is not about descriptors")
			continue
		}
		more, moreErr := unix.ParseUnixRights(&list[i])
		if moreErr != nil {
			err = errors.New("has descriptors that can't be parsed")
			continue
		}
		fds = append(fds, more...)
	}
	return fds, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
