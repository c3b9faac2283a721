package schema

// Named returns a type that differs from typ only in the name of its schema.
func Named[T any](name string, typ func() Type[T]) func() Type[T] {
	return func() Type[T] { return named[T]{typ(), name, 0} }
}

// NamedUntil returns a type like Named. From version v on, its schema has no
// name.
func NamedUntil[T any](v Version, name string, typ func() Type[T]) func() Type[T] {
	return func() Type[T] { return named[T]{typ(), name, v} }
}

type named[T any] struct {
	Type[T]
	name  string
	until Version // first version without the name; 0 for none
}

// Shape describes the type, with its name.
func (n named[T]) Shape(v View) *Shape {
	s := *n.Type.Shape(v)
	if n.until == 0 || v.Version < n.until {
		s.Name = n.name
	}
	return &s
}
