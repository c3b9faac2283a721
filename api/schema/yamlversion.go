package schema

import (
	"regexp"
	"sync"
)

// yamlVersion matches everything up to and including the directive %YAML 1.2
// and the character after it.
var yamlVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:[%#][^\r\n]*|[ \t]*)(?:\r\n|\n|\r))*%YAML[ \t]+1\.2[ \t\r\n]`)
})

// acceptYAML12 replaces the directive %YAML 1.2 with %YAML 1.1, because the
// parser accepts no other version. The meaning of scalars does not depend on
// the directive: yamlReader always applies the rules of YAML 1.2.
func acceptYAML12(text string) string {
	at := yamlVersion().FindStringIndex(text)
	if at == nil {
		return text
	}
	minor := at[1] - len("2\n")
	return text[:minor] + "1" + text[minor+1:]
}
