// Package confserver prepares a request for the cluster's configuration to its
// controllers, for a machine that has no slurm.conf ("configless" in Slurm).
// Package request sends it. Package confserver also keeps a copy of the
// configuration in a directory, for a start while no controller answers.
//
// A controller sends its configuration to any authenticated user. What it sends
// is not secret, but who sends it matters: the configuration says where the
// tokens of users are sent. With TLS, the controller has a certificate of the
// cluster's CA. Without TLS, as for all of Slurm's messages, the controller is
// known only by its address. So the addresses must come from the
// administrator, and never from the network: this package does not look for
// controllers in DNS.
package confserver

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// Servers are controllers from which the configuration can be fetched, in the
// order in which to try them.
type Servers []address

// address is the address of one controller.
type address struct {
	host string // name or address
	port int
	path string // of a UNIX socket, instead of host and port
}

// maxServers limits the number of controllers; Slurm has at most nine.
const maxServers = 16

// Parse parses a list of controllers: HOST[:PORT], separated by commas. An IPv6
// address is enclosed in brackets. For the bundled controller,
// unix:/PATH/TO/SOCKET is permitted, too.
func Parse(text string) (list Servers, err error) {
	for word := range strings.SplitSeq(text, ",") {
		s, err := parseServer(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if len(list) > maxServers {
		return nil, errs.New(errs.Invalid, "%d controllers; at most %d are permitted", len(list), maxServers)
	}
	return list, nil
}

func parseServer(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return address{}, errs.New(errs.Invalid, "%s: the path of the socket is not absolute", text)
		}
		return address{path: filepath.Clean(path)}, nil
	}
	s := address{host: text, port: conf.DefaultControllerPort}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(text, "]") {
		s.host = strings.TrimSuffix(inner, "]")
	} else if host, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return address{}, errs.New(errs.Invalid, "%s: the port is not a number from 1 to 65535", text)
		}
		s.host, s.port = host, int(n)
	} else if strings.Contains(text, ":") {
		return address{}, errs.New(errs.Invalid, "%s: want HOST or HOST:PORT", text).WithHint("write an IPv6 address in brackets: [2001:db8::1]:6817")
	}
	if s.host == "" || strings.ContainsAny(s.host, " \t/\"'") {
		return address{}, errs.New(errs.Invalid, "%q is not the name of a controller", text).WithHint("want HOST or HOST:PORT, separated by commas")
	}
	return s, nil
}

// String returns the list in the form that Parse accepts, with all ports.
func (list Servers) String() string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ",")
}

func (s address) String() string {
	if s.path != "" {
		return "unix:" + s.path
	}
	return net.JoinHostPort(s.host, strconv.Itoa(s.port))
}
