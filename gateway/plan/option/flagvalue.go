package option

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"schedrestd/internal/errs"
	"schedrestd/rpc/confserver"
)

// A NameList is a list of requested names. Its origin is the flag or the
// environment variable that set it.
type NameList struct {
	Origin string // "" if none was requested
	Value  string
}

// Set appends to the list, so that a flag may be repeated.
func (a *NameList) Set(v string) error {
	if a.Value != "" {
		v = a.Value + "," + v
	}
	a.Value = v
	return nil
}

func (a *NameList) String() string { return a.Value }

func (a *NameList) Type() string { return "LIST" }

// setOrigin records the flag as the origin of the list, if the flag was given.
func (a *NameList) setOrigin(f *pflag.Flag) {
	if f.Changed {
		a.Origin = flagName(f)
	}
}

// MaxThreads is the maximum number of threads. It is higher than the number of
// CPUs of any machine. It is also low enough that a worker can start, although
// each running thread uses memory.
const MaxThreads = 4096

// A number is a flag whose value must be an integer from min to max.
type number struct {
	to       *uint32
	min, max uint32
}

func (n number) Set(v string) error {
	i, err := strconv.ParseUint(v, 10, 31)
	if err != nil || uint32(i) < n.min || uint32(i) > n.max {
		return errs.New(errs.Invalid, "not a number from %d to %d", n.min, n.max)
	}
	*n.to = uint32(i)
	return nil
}

func (n number) String() string {
	if n.to == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n.to), 10)
}

func (number) Type() string { return "N" }

// A serverList is the value of --conf-server.
type serverList struct{ to *confserver.Servers }

func (l serverList) Set(v string) (err error) {
	*l.to, err = confserver.Parse(v)
	return err
}

func (l serverList) String() string {
	if l.to == nil || *l.to == nil {
		return ""
	}
	return l.to.String()
}

func (serverList) Type() string { return "SERVERS" }

// verbosity counts -v.
type verbosity int

const (
	increment    = "+1" // value of a -v without a number
	MaxVerbosity = 6
)

// Set increments the number, or sets it.
func (n *verbosity) Set(v string) error {
	if v == increment {
		*n++
		return nil
	}
	i, err := strconv.ParseUint(v, 10, 8)
	if err != nil || i > MaxVerbosity {
		return errs.New(errs.Invalid, "not a number from 0 to %d", MaxVerbosity)
	}
	*n = verbosity(i)
	return nil
}

func (n *verbosity) String() string { return strconv.Itoa(int(*n)) }

func (*verbosity) Type() string { return "count" }

// size is a number of bytes.
type size uint32

const maxSize = 1 << 30 // a worker may have several concurrently

// Set parses a number of bytes, with an optional suffix K, M or G.
func (s *size) Set(v string) error {
	digits, shift := v, 0
	for i, unit := range []string{"K", "M", "G"} {
		if d, ok := strings.CutSuffix(strings.ToUpper(v), unit); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || n > maxSize>>shift {
		return errs.New(errs.Invalid, "not a size from 1 to 1G, such as 8M")
	}
	*s = size(n << shift)
	return nil
}

func (s *size) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (*size) Type() string { return "SIZE" }

// flagName returns a flag as it is typed on the command line.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}
