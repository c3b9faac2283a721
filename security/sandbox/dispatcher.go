package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// dispatcherFDRows returns a copy of descriptorRows without the rows that do
// not suit the dispatcher. The dispatcher does not need lseek, pread64 or
// writev. Closing its channel must not kill it, because it closes the channel
// when it exits.
func dispatcherFDRows() []row {
	return slices.DeleteFunc(slices.Clone(descriptorRows), func(r row) bool {
		return slices.Contains([]string{"lseek", "pread64", "writev"}, r.call.name) || r.call.name == "close" && r.verdict == kill
	})
}

// Sizes of addresses. A filter sees the size of an address, but not the address
// itself.
const (
	sizeInet4   = unix.SizeofSockaddrInet4
	sizeInet6   = unix.SizeofSockaddrInet6
	sizeNetlink = unix.SizeofSockaddrNetlink
)

const (
	closeOnExec     = unix.SOCK_CLOEXEC
	cloexecNonblock = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK

	ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE of ip(7)
)

// dispatcherRows allow the dispatcher to hand over connections and to connect
// to daemons. The dispatcher never connects to a UNIX socket, because the
// server would see the dispatcher's identity instead of the worker's. It can
// create UNIX sockets only as connected pairs. It can open a file for reading,
// or open only the file's inode (O_PATH). A filter can't see which file or
// address a call names. So the dispatcher can open every file that its uid may
// read, and connect to every TCP address that is reachable from its network
// namespace.
var dispatcherRows = []row{
	{sys("sendmsg", unix.SYS_SENDMSG), allow, nil, "channels: connections are handed over"},
	{sys("recvmsg", unix.SYS_RECVMSG), allow, nil, "channels: connections and processes come from the parent"},
	{sys("socketpair", unix.SYS_SOCKETPAIR), allow, []test{
		is(0, unix.AF_UNIX).named("AF_UNIX"), is(1, unix.SOCK_SEQPACKET|cloexecNonblock).named("SOCK_SEQPACKET"), is(2, 0),
	}, "the channel between a service and a worker"},
	{sys("shutdown", unix.SYS_SHUTDOWN), allow, nil, "end an auditor's channel, which the parent also holds"},
	{sys("ioctl", unix.SYS_IOCTL), allow, []test{is(1, unix.SIOCOUTQ).named("SIOCOUTQ")}, "how much a worker has not read of its channel"},
	{sys("socket", unix.SYS_SOCKET), allow, []test{
		is(0, unix.AF_INET, unix.AF_INET6).named("AF_INET|AF_INET6"), is(1, unix.SOCK_STREAM|cloexecNonblock).named("SOCK_STREAM"), is(2, 0),
	}, "connections to daemons; no multipath TCP"},
	{sys("connect", unix.SYS_CONNECT), allow, []test{is(2, sizeInet4, sizeInet6).named("the size of a TCP address")}, "the same"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{
		is(1, unix.IPPROTO_TCP).named("IPPROTO_TCP"),
		is(2, unix.TCP_NODELAY, unix.TCP_FASTOPEN_CONNECT, unix.TCP_FASTOPEN_NO_COOKIE, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_USER_TIMEOUT).
			named("NODELAY|FASTOPEN_CONNECT|FASTOPEN_NO_COOKIE|KEEPIDLE|KEEPINTVL|USER_TIMEOUT"),
	}, "connections to daemons; sockets that connect with their first write; machines that are gone"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{
		is(1, unix.SOL_SOCKET).named("SOL_SOCKET"), is(2, unix.SO_KEEPALIVE).named("KEEPALIVE"),
	}, "machines of daemons that are gone"},
	{sys("setsockopt", unix.SYS_SETSOCKOPT), allow, []test{
		is(1, unix.IPPROTO_IP).named("IPPROTO_IP"), is(2, ipLocalPortRange).named("LOCAL_PORT_RANGE"),
	}, "each worker's part of the local ports"},
	{sys("getsockname", unix.SYS_GETSOCKNAME), allow, nil, "which process serves a TCP socket of this machine"},
	{sys("getpeername", unix.SYS_GETPEERNAME), allow, nil, "the same"},
	{sys("getsockopt", unix.SYS_GETSOCKOPT), allow, []test{is(1, unix.SOL_SOCKET).named("SOL_SOCKET"), is(2, unix.SO_PROTOCOL).named("PROTOCOL")}, "which process serves a TCP socket: package unix calls it to decode an address"},
	{sys("socket", unix.SYS_SOCKET), allow, []test{
		is(0, unix.AF_NETLINK).named("AF_NETLINK"), is(1, unix.SOCK_RAW|closeOnExec, unix.SOCK_RAW|cloexecNonblock).named("SOCK_RAW"),
		is(2, unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG).named("ROUTE|SOCK_DIAG"),
	}, "netlink: which process serves a TCP socket, and whether an address is on this machine; package net: zones of IPv6 addresses"},
	{sys("bind", unix.SYS_BIND), allow, []test{is(2, sizeNetlink).named("the size of a netlink address")}, "package net: netlink; the size is too short for a TCP port"},
	{sys("sendto", unix.SYS_SENDTO), allow, []test{is(3, 0), is(5, sizeNetlink).named("the size of a netlink address")}, "netlink requests; no MSG_FASTOPEN, which connects"},
	{sys("recvfrom", unix.SYS_RECVFROM), allow, nil, "the same"},
	{sys("openat", unix.SYS_OPENAT), allow, []test{
		is(2, unix.O_PATH|unix.O_CLOEXEC, unix.O_RDONLY|unix.O_CLOEXEC, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC).named("O_PATH|O_RDONLY"),
	}, "the inodes of daemons' UNIX sockets; ip_local_port_range; the register of gateway tokens (package guard); opening for writing kills"},
	{sys("readlinkat", unix.SYS_READLINKAT), allow, nil, "links in the path of the register of gateway tokens"},
	{sys("newfstatat", unix.SYS_NEWFSTATAT), allow, nil, "the owner of the directory of a UNIX socket; whether the register of gateway tokens has changed"},
	{sys("pipe2", unix.SYS_PIPE2), allow, []test{is(1, unix.O_CLOEXEC).named("O_CLOEXEC")}, "inetd: the worker's answers, for a regular file"},
	{sys("ppoll", unix.SYS_PPOLL), allow, nil, "inetd: whether the client is gone"},
	{sys("splice", unix.SYS_SPLICE), enosys, nil, "io.Copy to a file tries it first"},
	{sys("sendfile", unix.SYS_SENDFILE), enosys, nil, "the same"},
	{sys("copy_file_range", unix.SYS_COPY_FILE_RANGE), enosys, nil, "the same"},
}
