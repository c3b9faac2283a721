package nss

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
)

// PreloadUsers looks up users, each by name or by uid, with one run of getent,
// and caches the results. The look-ups of these users that follow need no run
// of their own. PreloadUsers reports no error: without a cached result, a
// look-up asks again.
func PreloadUsers(keys []string) { system.preload("passwd", keys) }

// PreloadGroups is like PreloadUsers, for groups.
func PreloadGroups(keys []string) { system.preload("group", keys) }

func (n *source) preload(database string, keys []string) {
	keys = slices.Clone(keys)
	if n.eachLine(database, func(line string) bool {
		keys = slices.DeleteFunc(keys, func(key string) bool { return isKeyOf(line, key) })
		return false
	}) != nil || len(keys) == 0 {
		return
	}
	tool := n.tool()
	if tool == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	out, err := run(ctx, tool, database, keys...)
	var exit *exec.ExitError
	if err != nil && (ctx.Err() != nil || !errors.As(err, &exit) || exit.ExitCode() != 2) { // 2: some keys have no entry
		return
	}
	for _, key := range keys {
		var found []string
		for line := range strings.Lines(out.buf.String()) {
			if line = strings.TrimSuffix(line, "\n"); isKeyOf(line, key) {
				found = append(found, line)
			}
		}
		switch len(found) {
		case 0:
			n.cacheAnswer(question{database, key}, "", notFound(database, key))
		case 1:
			n.cacheAnswer(question{database, key}, found[0], nil)
		}
	}
}

// isKeyOf reports whether key is the name or the id in a line of passwd(5) or
// group(5).
func isKeyOf(line, key string) bool {
	f := strings.SplitN(line, ":", 4)
	return len(f) == 4 && (f[0] == key || f[2] == key)
}
