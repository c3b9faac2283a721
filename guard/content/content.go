// Package content reads the files that package guard opens. It is a package of
// its own because the privileged parent, which uses guard, never reads these
// files.
package content

import (
	"io"
	"os"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Read opens path as guard.Open does and reads all of it. A file longer than
// most bytes is refused.
func Read(path string, rule guard.Rule, most int64) ([]byte, guard.Facts, error) {
	f, facts, err := guard.Open(path, rule)
	if err != nil {
		return nil, guard.Facts{}, err
	}
	defer f.Close()
	data, err := Opened(f, path, rule, most)
	return data, facts, err
}

// Opened reads all of a file that guard.Open opened, here or in another
// process.
func Opened(f *os.File, path string, rule guard.Rule, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, errs.Wrap(err, errs.Denied, "%s %s", rule.What, path)
	}
	if int64(len(data)) > most {
		return nil, errs.New(errs.Invalid, "%s %s: longer than %d bytes", rule.What, path, most)
	}
	return data, nil
}
