package schema

import (
	"regexp"
	"sync"
)

// yamlVersion matches a document from its beginning up to and including the
// directive %YAML 1.2 and the character after it.
var yamlVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:[%#][^\r\n]*|[ \t]*)(?:\r\n|\n|\r))*%YAML[ \t]+1\.2[ \t\r\n]`)
})

// acceptYAML12 replaces the directive %YAML 1.2 by %YAML 1.1, because the
// parser accepts no other version. This does not change how scalars are read:
// they follow the rules of 1.2 in both cases.
func acceptYAML12(text string) string {
	at := yamlVersion().FindStringIndex(text)
	if at == nil {
		return text
	}
	minor := at[1] - len("2\n")
	return text[:minor] + "1" + text[minor+1:]
}
