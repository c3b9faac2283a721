package openapi

import (
	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/feature"
)

// policy determines which schemas of an API version get a name. The schemas of
// bodies always do.
type policy struct{ objects, lists, words when }

// when is the condition for naming a schema. A schema without a name is written
// where it is used.
type when uint8

const (
	never when = iota
	often      // if it is used more than once
	always
)

// policyOf returns the policy of an API version with its flags.
//
// The default of each version has the names that generated clients use.
// slurmrestd's v0.0.41 defines everything except bodies in place, v0.0.40 and
// v0.0.42 name objects and sets of words, and v0.0.43 names no sets of words.
// No client needs the name of a list that is used once: v0.0.42 and v0.0.43
// define it in place unless +minimize_refs is set.
func policyOf(p feature.Parser) policy {
	switch v := schema.Version(p.Version); {
	case v < api.V41:
		return policy{objects: always, lists: always, words: always}
	case v == api.V41 && p.Flags.Has(feature.PreferRefs):
		return policy{objects: often, lists: often, words: often}
	case v == api.V41:
		return policy{}
	default:
		is := policy{objects: always, lists: often, words: always}
		if v > api.V42 || p.Flags.Has(feature.InlineEnums) {
			is.words = never
		}
		if p.Flags.Has(feature.MinimizeRefs) {
			is.lists = always
		}
		return is
	}
}

// names reports whether a schema gets a name if it is used the given number of
// times.
func (p policy) names(s *schema.Shape, uses int) bool {
	rule := p.objects
	if s.Kind == "array" {
		rule = p.lists
		if s.Items != nil && s.Items.Enum != nil {
			rule = p.words
		}
	}
	return rule == always || rule == often && uses > 1
}
