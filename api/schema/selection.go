package schema

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/internal/typo"
)

// Selection is the part of a value that a client asks for. A nil *Selection is
// the whole value.
type Selection struct {
	members map[string]*Selection // the members of an object that are shown, by name
}

// Select returns the part of a value that the paths name. The shape argument
// describes the value. A path such as "time.limit" names a member of an object,
// and then members of that member. In an array, the path goes on in each
// element. If one path names a member and another path a part of this member,
// the whole member is selected.
//
// The error names the first path that leads nowhere, and a similar name if
// there is one.
func Select(shape *Shape, paths []string) (*Selection, error) {
	selection := &Selection{members: map[string]*Selection{}}
	for _, path := range paths {
		if err := selection.add(shape, path); err != nil {
			return nil, err
		}
	}
	return selection, nil
}

// Whole returns a Selection of all members that the shape of an object has.
func Whole(shape *Shape) *Selection {
	s := &Selection{members: map[string]*Selection{}}
	for i := range shape.Fields {
		s.members[shape.Fields[i].Name] = nil
	}
	return s
}

// Replace makes part the selected part of a member.
func (s *Selection) Replace(member string, part *Selection) { s.members[member] = part }

// add selects the value that a path names. The shape argument describes the
// object of which s is a part.
func (s *Selection) add(shape *Shape, path string) error {
	names := strings.Split(path, ".")
	for i, name := range names {
		for shape.Kind == "array" && shape.Items != nil {
			shape = shape.Items
		}
		at := slices.IndexFunc(shape.Fields, func(p Property) bool { return p.Name == name })
		if at < 0 {
			return unknownMember(shape, names[:i], name)
		}
		shape = shape.Fields[at].Shape
		part, selected := s.members[name]
		if part == nil {
			part = &Selection{members: map[string]*Selection{}}
			switch {
			case i == len(names)-1:
				s.members[name] = nil // the whole member
			case !selected:
				s.members[name] = part
			}
		}
		s = part // if the member is selected as a whole, a part without effect
	}
	return nil
}

// unknownMember returns the error about a name that is no member of an object.
// The parent argument contains the names that lead to the object.
func unknownMember(shape *Shape, parent []string, name string) error {
	place := strings.Join(parent, ".")
	switch {
	case name == "":
		return fmt.Errorf("empty name of a field")
	case len(shape.Fields) == 0:
		return fmt.Errorf("field %q has no fields of its own", place)
	}
	text := fmt.Sprintf("unknown field %q", Shorten(strings.Join(append(slices.Clone(parent), name), ".")))
	var names []string
	for i := range shape.Fields {
		names = append(names, shape.Fields[i].Name)
	}
	if near := typo.Nearest(name, names); near != "" {
		text += "; did you mean " + strings.Join(append(slices.Clone(parent), near), ".") + "?"
	}
	return fmt.Errorf("%s", text)
}

// Shows reports whether an object in v has the member name.
func (v View) Shows(name string) bool {
	if v.Only == nil {
		return true
	}
	_, shown := v.Only.members[name]
	return shown
}

// In returns the View of the value of a member. The member must be shown.
func (v View) In(name string) View {
	if v.Only != nil {
		v.Only = v.Only.members[name]
	}
	return v
}
