package main

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed rules.txt
var rulesText string

var phrases, retired, retiredInNames = parseRules(rulesText)

// A rule describes a phrase that no text may contain.
type rule struct {
	pattern     *regexp.Regexp
	replacement string
}

func parseRules(text string) (phrases []rule, words, names map[string]string) {
	words, names = map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		kind, rest, _ := strings.Cut(line, "\t")
		pattern, replacement, ok := strings.Cut(rest, "\t")
		switch {
		case !ok:
			panic("rules.txt: not three columns: " + line)
		case kind == "phrase":
			phrases = append(phrases, rule{regexp.MustCompile("(?i)" + pattern), replacement})
		case kind == "word":
			words[pattern], names[pattern] = replacement, replacement
		case kind == "name":
			names[pattern] = replacement
		default:
			panic("rules.txt: unknown kind: " + line)
		}
	}
	return phrases, words, names
}

// replacementFor returns the replacement for a word or, if the rules lack the
// word, for its base form. If the rules lack both, it returns "".
func replacementFor(rules map[string]string, word string) string {
	word = strings.TrimSuffix(word, "'s")
	if replacement, ok := rules[word]; ok {
		return replacement
	}
	for _, suffix := range []string{"s", "es", "d", "ed", "ing"} {
		if stem, ok := strings.CutSuffix(word, suffix); ok {
			for _, form := range []string{stem, stem + "e"} {
				if replacement, ok := rules[form]; ok {
					return replacement
				}
			}
		}
	}
	return ""
}
