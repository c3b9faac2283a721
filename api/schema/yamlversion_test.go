package schema

import "testing"

// TestYAMLVersion checks that the directives of YAML 1.1 and 1.2 are accepted,
// and those of other versions refused.
func TestYAMLVersion(t *testing.T) {
	for text, ok := range map[string]bool{
		"%YAML 1.2\n---\na: 12:30\n":                        true,
		"%YAML 1.1\n---\na: 12:30\n":                        true,
		"\uFEFF%YAML 1.2\n---\na: 12:30\n":                  true,
		"# a comment\n\n%YAML\t1.2 # core\r\n---\na: 12:30": true,
		"%TAG ! tag:x,1:\n%YAML 1.2\n---\na: 12:30\n":       true,
		"%YAML 1.2\n%YAML 1.2\n---\na: 12:30\n":             false,
		"%YAML 1.3\n---\na: 12:30\n":                        false,
		"%YAML 2.0\n---\na: 12:30\n":                        false,
		"%YAML 1.21\n---\na: 12:30\n":                       false,
		"%YAML 1.2":                                         false,
		"%YAML 1.2\na: 12:30\n":                             false, // without "---"
	} {
		v, err := ReadYAML(t.Context(), text, DefaultLimits)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		} else if ok && (len(v.Items) != 1 || v.Items[0].Text != "12:30" || v.Items[0].Kind != Text) {
			t.Errorf("%q: %+v", text, v)
		}
	}
	const inside = "a: |\n  %YAML 1.2\n  x\n"
	if v, err := ReadYAML(t.Context(), inside, DefaultLimits); err != nil || v.Items[0].Text != "%YAML 1.2\nx\n" {
		t.Errorf("in a scalar: %+v, %v", v, err)
	}
}
