package schema

// Named returns a type that differs from typ only in the name of its schema.
func Named[T any](name string, typ func() Type[T]) func() Type[T] {
	return func() Type[T] { return named[T]{typ(), name} }
}

type named[T any] struct {
	Type[T]
	name string
}

// Shape describes the type, with its name.
func (n named[T]) Shape(v View) *Shape {
	s := *n.Type.Shape(v)
	s.Name = n.name
	return &s
}
