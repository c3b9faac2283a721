package openapi

import (
	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/feature"
)

// policy determines which schemas of an API version have a name: objects, lists,
// sets of words, and the bodies of only one operation. A body that several
// operations have always has a name. A schema without a name is written wherever
// it is used.
type policy struct{ objects, lists, words, bodies bool }

// policyOf returns the policy of an API version with its flags. Schemas have the
// same names as in slurmrestd's documents, because the code of generated clients
// contains these names.
//
// Either all schemas have names, or only the bodies of several operations, as in
// v0.0.41 without +prefer_refs and in later versions with +minimize_refs. From v0.0.43 on, and in
// v0.0.42 with +inline_enums, sets of words have none.
func policyOf(p feature.Parser) policy {
	v := schema.Version(p.Version)
	if v == api.V41 && !p.Flags.Has(feature.PreferRefs) || p.Flags.Has(feature.MinimizeRefs) {
		return policy{}
	}
	return policy{bodies: true, objects: true, lists: true, words: v <= api.V42 && !p.Flags.Has(feature.InlineEnums)}
}

// names reports whether a schema has a name.
func (p policy) names(u *schemaUse) bool {
	s := u.shape
	switch {
	case u.bodies > 0:
		return p.bodies || u.bodies > 1
	case s.Kind != "array":
		return p.objects
	case s.Items != nil && s.Items.Enum != nil:
		return p.words
	}
	return p.lists
}
