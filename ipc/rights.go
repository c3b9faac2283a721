package ipc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// DialBatchSize is the number of sockets in one DialedBatch (package work). No
// message has more descriptors.
const DialBatchSize = 32

// maxRights is the number of descriptors that the control buffer has room for:
// one more than any row of the protocol table permits, so that surplus
// descriptors are noticed and closed.
const maxRights = DialBatchSize + 1

// rightsSpace is the size of the control buffer.
var rightsSpace = unix.CmsgSpace(maxRights * 4)

// parseRights returns the descriptors of a control message. It returns all
// descriptors that it found, even with an error; the caller closes them.
// Anything but SCM_RIGHTS is an error. The kernel has already installed the
// descriptors, so a descriptor that is overlooked here would stay open. A
// compromised worker could fill the parent's table that way.
func parseRights(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, errors.New("has a control message that can't be parsed")
	}
	for i := range list {
		if list[i].Header.Level != unix.SOL_SOCKET || list[i].Header.Type != unix.SCM_RIGHTS {
			err = errors.New("has a control message that is not about descriptors")
			continue
		}
		if len(list[i].Data)%4 != 0 { // ParseUnixRights would index past the end
			err = errors.New("has half a descriptor")
			continue
		}
		rights, perr := unix.ParseUnixRights(&list[i])
		if perr != nil {
			err = errors.New("has descriptors that can't be parsed")
			continue
		}
		fds = append(fds, rights...)
	}
	return fds, err
}

// closeAll closes descriptors.
func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
