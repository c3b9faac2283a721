package sockdiag

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// Query sends one request to the kernel and returns the body of its reply. The
// kernel replies during the send call, so Query never waits.
func Query(protocol int, kind uint16, body []byte) ([]byte, error) {
	fd, err := Open(protocol)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return queryVia(fd, kind, body)
}

// Open opens a netlink socket in the calling thread's network namespace.
func Open(protocol int) (fd int, err error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
}

// queryVia works like Query, but sends the request through the socket fd.
func queryVia(fd int, kind uint16, body []byte) ([]byte, error) {
	request := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	binary.NativeEndian.PutUint32(request, uint32(unix.SizeofNlMsghdr+len(body)))
	binary.NativeEndian.PutUint16(request[4:], kind)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, append(request, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	reply := make([]byte, 1024) // a reply about a socket or a route takes a few hundred bytes
	n, from, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return nil, err
	}
	// Any process may send to a netlink socket, but only the kernel has port
	// number 0.
	sender, ok := from.(*unix.SockaddrNetlink)
	messages, err := syscall.ParseNetlinkMessage(reply[:n])
	if !ok || sender.Pid != 0 || err != nil || len(messages) == 0 {
		return nil, unix.EBADMSG
	}
	m := messages[0]
	if m.Header.Type != unix.NLMSG_ERROR {
		return m.Data, nil
	}
	if len(m.Data) < 4 {
		return nil, unix.EBADMSG
	}
	number := int32(binary.NativeEndian.Uint32(m.Data))
	if number == 0 {
		return nil, unix.EBADMSG
	}
	return nil, unix.Errno(-number)
}
