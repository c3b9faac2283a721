package api

import (
	"regexp"
	"strings"
	"testing"

	"schedrestd/api/schema"
)

var (
	counts = regexp.MustCompile(`(?i)\b(number of|how many|how often)\b`)
	points = regexp.MustCompile(`^(Time (of|at|when|from|since)|(Boot|End|Start|Earliest start|Expected end) time|Start of|Deadline|Return 304)\b`)
)

// TestDescriptions checks that every field and parameter has a description. For
// a number, the description must name the unit, or the objects that are
// counted. Numbers that are neither measurements nor counts (schema.Bare) are
// exempt.
func TestDescriptions(t *testing.T) {
	numbers := 0
	for _, e := range Endpoints {
		for _, v := range Versions {
			view := schema.View{Version: v}
			for name, d := range map[string]Table{"parameters": e.Params, "request": e.Request, "answer": e.Answer} {
				if d != nil {
					numbers += checkFields(t, e.ID+" "+name+" "+v.String(), d.Shape(view))
				}
			}
		}
		for _, text := range []string{e.Doc, e.Description, e.AnswerDoc} {
			if text == "" || strings.HasSuffix(e.Doc, ".") {
				t.Errorf("%s: a description is missing, or Doc ends with a full stop", e.ID)
			}
		}
		if (e.Request != nil) != (e.RequestDoc != "") {
			t.Errorf("%s: must have both Request and RequestDoc, or neither", e.ID)
		}
	}
	if numbers < 500 {
		t.Errorf("only %d numbers were checked", numbers)
	}
}

// checkFields checks all fields below s, and returns how many of them are
// numbers.
func checkFields(t *testing.T, in string, s *schema.Shape) (numbers int) {
	if s.Items != nil {
		numbers += checkFields(t, in+"[]", s.Items)
	}
	for _, p := range s.Fields {
		at := in + "." + p.Name
		if p.Doc == "" {
			t.Errorf("%s has no description", at)
		}
		if !isNumber(p.Shape) {
			numbers += checkFields(t, at, p.Shape)
			continue
		}
		numbers++
		switch {
		case p.Unit == "":
			t.Errorf("%s is a number without a unit; use schema.Count or schema.Bare if it has none", at)
		case p.Unit == schema.CountUnit && !counts.MatchString(p.Doc):
			t.Errorf("%s is a count, but its description does not name what it counts: %q", at, p.Doc)
		case p.Unit == UnixTime && !points.MatchString(p.Doc):
			t.Errorf("%s is a point in time, but is described as something else: %q", at, p.Doc)
		case p.Unit == "s" && points.MatchString(p.Doc):
			t.Errorf("%s is a duration, but is described as a point in time: %q", at, p.Doc)
		}
	}
	return numbers
}

// isNumber reports whether s describes a number, plain or in a wrapper.
func isNumber(s *schema.Shape) bool {
	return s.Kind == "integer" || s.Kind == "number" || strings.Contains(s.Name, "_no_val")
}
