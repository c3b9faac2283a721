// Package zone finds the local time zone and converts local times. It follows
// glibc, which Slurm's programs use, where package time differs from it: TZ may
// be a POSIX string, and a local time that a change of the clock skips or
// repeats has one meaning in all time zones.
//
// A worker can't read TZ or open files. So schedrestd-config reads the time
// zone and sends it to the worker as data, in the format TZif (RFC 9636).
package zone

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// maxSize is the maximum size of a time zone's data in bytes. The largest file
// in the database of time zones has less than 4 KiB.
const maxSize = 8 << 10

const (
	localtime = "/etc/localtime"
	database  = "/usr/share/zoneinfo"
)

// Environment returns the data of the local time zone. It comes from the
// variable TZ or, if TZ is not set, from /etc/localtime. No data stands for
// UTC. As in glibc, the value of TZ is the path of a file, a name in
// /usr/share/zoneinfo, or a POSIX string such as "EST5EDT,M3.2.0,M11.1.0". A
// path or a name may follow a colon. In glibc an unknown value also stands for
// UTC, but Environment returns an error.
func Environment() ([]byte, error) {
	value, ok := os.LookupEnv("TZ")
	if !ok {
		if data, err := read(localtime); err == nil {
			return data, nil
		}
		return nil, nil
	}
	return find(value, database)
}

// find returns the data of the time zone that a value of TZ stands for.
func find(value, database string) ([]byte, error) {
	name, colon := strings.CutPrefix(value, ":")
	switch name {
	case "", "UTC", "UTC0":
		return nil, nil
	}
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(database, name)
	}
	if filepath.IsAbs(name) || filepath.IsLocal(name) {
		data, err := read(path)
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			return data, errs.Wrap(err, errs.Invalid, "environment: TZ=%s", printable.Text(value))
		}
	}
	if !colon {
		data := rule(name)
		if loc, err := Load(data); err == nil {
			if abbreviation, _ := time.Unix(0, 0).In(loc).Zone(); abbreviation != noRule {
				return data, nil
			}
		}
	}
	return nil, errs.New(errs.Invalid, "environment: TZ=%s is not a time zone", printable.Text(value)).
		WithHint("use a name in %s such as America/New_York, the absolute path of a file in its format, "+
			"or a POSIX string such as EST5EDT,M3.2.0,M11.1.0", database)
}

// read returns the content of a file with a time zone. It does not wait if the
// path names a FIFO.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New(path+" is not a regular file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, errs.New(errs.Invalid, "%s is larger than %d bytes", path, maxSize)
	}
	if _, err := Load(data); err != nil || len(data) == 0 {
		return nil, errs.New(errs.Invalid, "%s does not contain a time zone", path)
	}
	return data, nil
}

// noRule is the abbreviation that a time in a zone from rule has if package
// time can't parse the rule.
const noRule = "-00"

// rule returns the data of a time zone that consists only of a POSIX string:
// two headers, of which only the second is followed by content, one type of
// local time, which is used only if the string is invalid, and the string.
func rule(posix string) []byte {
	header := func(types, abbreviations uint32) []byte {
		h := append([]byte("TZif2"), make([]byte, 15+4*4)...)
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(h, types), abbreviations)
	}
	data := append(header(0, 0), header(1, uint32(len(noRule)+1))...)
	data = append(data, make([]byte, 6)...) // offset, summer time, index of the abbreviation
	return append(append(data, noRule+"\x00\n"...), posix+"\n"...)
}

// Load returns the time zone with the given data.
func Load(data []byte) (*time.Location, error) {
	if len(data) == 0 {
		return time.UTC, nil
	}
	return time.LoadLocationFromTZData("Local", data)
}

// SetLocal makes the time zone of the environment the local time zone of this
// process.
func SetLocal() error {
	data, err := Environment()
	if err != nil {
		return err
	}
	if loc, err := Load(data); err == nil {
		time.Local = loc
	}
	return nil
}
