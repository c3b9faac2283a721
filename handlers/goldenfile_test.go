package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A goldenAnswer is the answer to a golden in one version.
type goldenAnswer struct {
	version string // of the API, such as v0.0.45
	status  int
	body    string // indented JSON
}

// formatGolden returns the content of a golden's file:
//
//	GET /sched/VERSION/ping
//
//	== v0.0.45 200
//	{
//	 "pings": [],
//	 "meta": "{version}"
//	}
//	== v0.0.44 200 like v0.0.45
//	== v0.0.43 200 like v0.0.44 except
//	@ 2
//	- "pings": [],
//	+ "pings": [""],
//
// The answers begin with the newest version, which is complete. Every other
// version lists the lines in which it differs from the version above it: "@"
// with the number of a line of that version, then the lines that it loses (-)
// and the lines that take their place (+). {version} stands for the answer's own
// version.
func formatGolden(g golden, answers []goldenAnswer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n%s\n", g.method, g.url, strings.TrimPrefix(g.body+"\n", "\n"))
	var above []string
	for i, a := range answers {
		lines := strings.Split(strings.ReplaceAll(a.body, a.version, "{version}"), "\n")
		fmt.Fprintf(&b, "== %s %d", a.version, a.status)
		if i == 0 {
			b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
		} else {
			differences := diffLines(above, lines)
			fmt.Fprintf(&b, " like %s", answers[i-1].version)
			if differences != "" {
				b.WriteString(" except")
			}
			b.WriteString("\n" + differences)
		}
		above = lines
	}
	return b.String()
}

// parseGolden returns the answers in text, which has the format of
// formatGolden.
func parseGolden(text string) (answers []goldenAnswer, err error) {
	_, text, _ = strings.Cut(text, "\n== ")
	var above []string
	for section := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n== ") {
		title, rest, hasLines := strings.Cut(section, "\n")
		words := strings.Fields(title)
		if len(words) < 2 {
			return nil, fmt.Errorf("parse the line %q: it has no status", title)
		}
		a := goldenAnswer{version: words[0]}
		if a.status, err = strconv.Atoi(words[1]); err != nil {
			return nil, err
		}
		var lines []string
		if hasLines {
			lines = strings.Split(rest, "\n")
		}
		if len(answers) > 0 {
			if lines, err = patchLines(above, lines); err != nil {
				return nil, fmt.Errorf("%s: %w", title, err)
			}
		}
		above = lines
		a.body = strings.ReplaceAll(strings.Join(lines, "\n"), "{version}", a.version)
		answers = append(answers, a)
	}
	return answers, nil
}

// diffLines returns the lines in which b differs from a (see formatGolden).
func diffLines(a, b []string) string {
	// common[i][j] is the greatest number of lines that a[i:] and b[j:] have
	// in common.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = 1 + common[i+1][j+1]
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		fmt.Fprintf(&out, "@ %d\n", i+1)
		var added strings.Builder
		for i < len(a) && (j == len(b) || a[i] != b[j]) || j < len(b) && i == len(a) {
			if j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1] {
				fmt.Fprintf(&out, "-%s\n", a[i])
				i++
			} else {
				fmt.Fprintf(&added, "+%s\n", b[j])
				j++
			}
		}
		out.WriteString(added.String())
	}
	return out.String()
}

// patchLines returns the text that differs from a in the given lines, which
// diffLines returned.
func patchLines(a, differences []string) (b []string, err error) {
	used := 0 // lines of a
	for _, line := range differences {
		kind, content := line[:min(1, len(line))], line[min(1, len(line)):]
		switch {
		case kind == "@":
			first, err := strconv.Atoi(strings.TrimSpace(content))
			if err != nil || first-1 < used || first-1 > len(a) {
				return nil, fmt.Errorf("no line %s", content)
			}
			b = append(b, a[used:first-1]...)
			used = first - 1
		case kind == "-" && used < len(a) && a[used] == content:
			used++
		case kind == "+":
			b = append(b, content)
		default:
			return nil, fmt.Errorf("%q does not apply to line %d", line, used+1)
		}
	}
	return append(b, a[used:]...), nil
}

// TestGoldenFile checks that parseGolden returns the answers that formatGolden
// was given, and that neither overlooks a difference.
func TestGoldenFile(t *testing.T) {
	bodies := []string{"{\n a\n b\n c\n}", "{\n a\n c\n}", "{}", "{\n a\n b\n c\n d\n}", "x\n{\n b\n a\n}\ny", `{"plugin": "data_parser/%s"}`, "[\n]"}
	versions := []string{"v0.0.45", "v0.0.44", "v0.0.43"}
	for _, first := range bodies {
		for _, second := range bodies {
			answers := []goldenAnswer{}
			for i, body := range []string{first, second, first} {
				answers = append(answers, goldenAnswer{versions[i], 200 + i, strings.ReplaceAll(body, "%s", versions[i])})
			}
			text := formatGolden(golden{method: "GET", url: "/VERSION"}, answers)
			got, err := parseGolden(text)
			if err != nil || !slices.Equal(got, answers) {
				t.Errorf("%v %v, want %v, from\n%s", got, err, answers, text)
			}
			if first == second && strings.Count(text, "\n") != strings.Count(first, "\n")+6 {
				t.Errorf("answers without a difference:\n%s", text)
			}
		}
	}
	for _, differences := range []string{"-b", "@ 3\n-b\n-c", "@ 9", "@ 2\n-a", " ", "@"} {
		if got, err := patchLines([]string{"a", "b"}, strings.Split(differences, "\n")); err == nil {
			t.Errorf("%q results in %q", differences, got)
		}
	}
}
