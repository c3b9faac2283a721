package openapi

import (
	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// policy determines which schemas of an API version have a name. The schema of
// a whole body always has one.
type policy struct{ objects, lists, words condition }

// condition says when a schema has a name. A schema without a name is written
// wherever it is used.
type condition uint8

const (
	never    condition = iota
	ifReused           // if it is used more than once
	always
)

// policyOf returns the policy of an API version with its flags.
//
// By default, schemas have the same names as in slurmrestd's documents, because
// the code of generated clients contains these names. In v0.0.41, only bodies
// have names. In v0.0.40 and v0.0.42, objects and sets of words have names.
// From v0.0.43 on, only objects have names.
//
// In v0.0.40, all lists have names too. From v0.0.42 on, a list that is used
// only once has no name by default, because no client needs the name. The flag
// +minimize_refs gives such a list a name.
func policyOf(p feature.Parser) policy {
	switch v := schema.Version(p.Version); {
	case v < api.V41:
		return policy{objects: always, lists: always, words: always}
	case v == api.V41 && p.Flags.Has(feature.PreferRefs):
		return policy{objects: ifReused, lists: ifReused, words: ifReused}
	case v == api.V41:
		return policy{}
	default:
		result := policy{objects: always, lists: ifReused, words: always}
		if v > api.V42 || p.Flags.Has(feature.InlineEnums) {
			result.words = never
		}
		if p.Flags.Has(feature.MinimizeRefs) {
			result.lists = always
		}
		return result
	}
}

// names reports whether a schema that the document uses the given number of
// times has a name.
func (p policy) names(s *schema.Shape, uses int) bool {
	rule := p.objects
	if s.Kind == "array" {
		rule = p.lists
		if s.Items != nil && s.Items.Enum != nil {
			rule = p.words
		}
	}
	return rule == always || rule == ifReused && uses > 1
}
