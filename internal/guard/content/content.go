// Package content reads the files that package guard opens. It is a package of
// its own because the privileged parent, which uses guard, never reads these
// files.
package content

import (
	"io"
	"os"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// Read opens path with guard.Open and reads the whole file. It refuses a file
// longer than maxBytes.
func Read(path string, rule guard.Rule, maxBytes int64) ([]byte, guard.Facts, error) {
	f, facts, err := guard.Open(path, rule)
	if err != nil {
		return nil, guard.Facts{}, err
	}
	defer f.Close()
	data, err := ReadOpened(f, path, rule, maxBytes)
	return data, facts, err
}

// ReadOpened reads the whole file f. This process or another one has opened f
// with guard.Open.
func ReadOpened(f *os.File, path string, rule guard.Rule, maxBytes int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, errs.Wrap(err, errs.Denied, "%s %s", rule.Label, path)
	}
	if int64(len(data)) > maxBytes {
		return nil, errs.New(errs.Invalid, "%s %s: longer than %d bytes", rule.Label, path, maxBytes)
	}
	return data, nil
}
