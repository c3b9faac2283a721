package conf

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// wantError returns the error for an invalid value. The error contains only the
// expected value; the caller adds the key and the line number.
func wantError(expected string) error { return errors.New("want " + expected) }

// splitList splits a comma-separated value. It removes spaces around the
// elements, and drops empty elements.
func splitList(v string) []string {
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// pluginName returns the name of a plugin in lower case. It removes prefix, the
// type of the plugin, such as "auth/".
func pluginName(v, prefix string) string { return strings.TrimPrefix(fold(v), prefix) }

// setName sets a cluster's name, in lower case as in Slurm.
func setName(to *string, v string) error {
	if v == "" || len(v) > 64 || strings.ContainsFunc(v, func(r rune) bool { return !isNameRune(r) }) {
		return wantError("a name of letters, digits, '.', '_' and '-'")
	}
	*to = fold(v)
	return nil
}

// setUser sets a user's name or uid. The name "root" is the default, and is
// stored as "".
func setUser(to *string, v string) error {
	if v == "" || len(v) > 256 || v[0] == '-' || strings.ContainsAny(v, ":/, \t") {
		return wantError("a user name or uid")
	}
	*to = v
	if v == "root" || v == "0" {
		*to = ""
	}
	return nil
}

// setPort sets a port. If the value is a range, it sets the first port of the
// range.
func setPort(to *int, v string) error {
	var more int
	return setPorts(to, &more, v)
}

// setPorts parses a port or a range of ports. It sets *first to the first port,
// and *more to the number of ports after it. Slurm's controller listens on each
// port of a range, and a client may use any of them. This spreads the
// connections over more queues.
func setPorts(first, more *int, v string) error {
	low, high, isRange := strings.Cut(v, "-")
	port, err := strconv.ParseUint(low, 10, 16)
	if err != nil || port == 0 {
		return wantError("a port from 1 to 65535")
	}
	last := port
	if isRange {
		if last, err = strconv.ParseUint(high, 10, 16); err != nil || last < port {
			return wantError("a port from 1 to 65535")
		}
	}
	*first, *more = int(port), int(last-port)
	return nil
}

func setSeconds(to *time.Duration, v string) error {
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 {
		return wantError("a number of seconds above 0")
	}
	*to = time.Duration(n) * time.Second
	return nil
}

// Maximum timeouts for a daemon's answer, and for connecting to a daemon. A
// client that has waited for longer has usually disconnected, and its request
// only delays other requests.
const (
	maxMessageTimeout = time.Hour
	maxConnectTimeout = 2 * time.Minute     // the kernel stops trying to connect after about this time
	maxKillWait       = 65533 * time.Second // as in Slurm
)

// setTimeout sets a number of seconds. As in Slurm, the value is decimal,
// hexadecimal, octal, or "infinite", which here means the maximum. A value of 0
// is never intended, because Slurm's commands would then not wait. So 0 is an
// error in a file for our daemons, and means the default in a file that Slurm's
// daemons read.
func setTimeout(to *time.Duration, v string, limit time.Duration) error {
	n, err := strconv.ParseUint(v, 0, 64)
	switch isInfinite := fold(v) == "infinite" || fold(v) == "unlimited"; {
	case errors.Is(err, strconv.ErrRange), isInfinite, err == nil && n > uint64(limit/time.Second):
		*to = limit
		return warningError(fmt.Sprintf("reduced to the maximum, %d", limit/time.Second))
	case err != nil || strings.Contains(v, "_"):
		return wantError("a number of seconds above 0")
	case n == 0:
		return toleratedError{wantError("a number of seconds above 0"), "0 is not a timeout; the default is used"}
	}
	*to = time.Duration(n) * time.Second
	return nil
}

// setPath sets an absolute path. A relative path is an error: each daemon could
// open a different file.
func setPath(to *string, v string) error {
	if !filepath.IsAbs(v) {
		return wantError("an absolute path")
	}
	*to = filepath.Clean(v)
	return nil
}

// maxHosts limits the controllers of a cluster. The name of each is looked up.
const maxHosts = 32

// addHost adds "name" or "name(address)".
func addHost(to *[]Host, v string) error {
	name, rest, ok := strings.Cut(v, "(")
	h := Host{name, name}
	if ok {
		address, closed := strings.CutSuffix(rest, ")")
		if !closed {
			return wantError("name or name(address)")
		}
		if err := setHost(&h.Address, address); err != nil {
			return err
		}
	}
	if err := setHost(&h.Name, name); err != nil {
		return err
	}
	if len(*to) == maxHosts {
		return fmt.Errorf("more than %d controllers", maxHosts)
	}
	*to = append(*to, h)
	return nil
}

// setHost sets the name or the address of a machine. It removes brackets around
// an IPv6 address.
func setHost(to *string, v string) error {
	if inner, ok := strings.CutPrefix(v, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok && strings.Contains(inner, ":") {
			v = inner
		}
	}
	bad := func(r rune) bool { return !isNameRune(r) && r != ':' && r != '%' }
	if v == "" || len(v) > 255 || v[0] == '-' || strings.ContainsFunc(v, bad) {
		return wantError("the name or address of one machine")
	}
	*to = v
	return nil
}

func isNameRune(r rune) bool {
	return r < 0x80 && isKeyByte(byte(r)) || r == '-'
}
