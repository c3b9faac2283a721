package endpoint

import (
	"path/filepath"
	"strings"

	"schedrestd/errs"
)

// CheckNamespace returns an error if text is neither a name nor an absolute
// path of a network namespace. The error names subject.
func CheckNamespace(subject, text string) error {
	if strings.ContainsRune(text, 0) || text == "." || text == ".." || !filepath.IsAbs(text) && strings.Contains(text, "/") {
		return errs.New(errs.Invalid, "%s is neither the name of a network namespace nor an absolute path", subject).
			WithHint("use a name that ip netns list shows, or a path such as /run/netns/NAME or /proc/PID/ns/net")
	}
	return nil
}
