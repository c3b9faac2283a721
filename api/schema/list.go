package schema

// List returns the type of an array that the model keeps in memory.
func List[T any](elem func() Type[T]) func() Type[[]T] {
	return func() Type[[]T] { return list[T]{elem()} }
}

type list[T any] struct{ elem Type[T] }

func (l list[T]) Shape(v View) *Shape { return &Shape{Kind: "array", Items: l.elem.Shape(v)} }

func (l list[T]) Renderer(v View) func(Encoder, *[]T) {
	render := l.elem.Renderer(v)
	return func(e Encoder, items *[]T) {
		e.BeginArray()
		for i := range *items {
			render(e, &(*items)[i])
		}
		e.EndArray()
	}
}

// Parser returns a function that parses an array. The function accepts a single
// value as an array with one element, but adds a warning. It refuses a single
// object.
func (l list[T]) Parser(v View) func(*Report, *Value, *[]T) bool {
	parse := l.elem.Parser(v)
	return func(r *Report, doc *Value, into *[]T) bool {
		items := doc.Items
		switch doc.Kind {
		case Array:
		case Map:
			return r.Error(doc, "expected array, got object")
		default:
			r.WarnKind(doc, Array)
			items = []Value{*doc}
		}
		elements := make([]T, 0, len(items))
		for i := range items {
			var item T
			r.InElement(i, func() {
				if parse(r, &items[i], &item) {
					elements = append(elements, item)
				}
			})
		}
		*into = elements
		if r.Lenient { // a list that is empty only because no element is valid counts as absent: it must not remove anything
			return len(elements) > 0 || len(items) == 0
		}
		return len(elements) == len(items)
	}
}

// Stream is a list that is never in memory as a whole. It calls the function
// each with one element after another. If a call returns an error, the Stream
// stops and returns this error. A Stream may also return an error of its own.
type Stream[T any] func(each func(*T) error) error

// One returns a Stream of one element.
func One[T any](item *T) Stream[T] {
	return func(each func(*T) error) error { return each(item) }
}

// StreamOf returns the type of an array whose elements come from a Stream, one
// at a time. If the stream returns an error, the body is aborted
// (Encoder.Fail), so that an array that ends early can't look complete.
func StreamOf[T any](elem func() Type[T]) func() Type[Stream[T]] {
	return func() Type[Stream[T]] { return stream[T]{elem()} }
}

type stream[T any] struct{ elem Type[T] }

func (s stream[T]) Shape(v View) *Shape { return &Shape{Kind: "array", Items: s.elem.Shape(v)} }

func (s stream[T]) Renderer(v View) func(Encoder, *Stream[T]) {
	render := s.elem.Renderer(v)
	return func(e Encoder, source *Stream[T]) {
		e.BeginArray()
		if *source != nil {
			err := (*source)(func(item *T) error {
				render(e, item)
				return e.Err()
			})
			if err != nil {
				e.Fail(err)
			}
		}
		e.EndArray()
	}
}

// Parser returns Refuse, because a Stream can't be parsed.
func (s stream[T]) Parser(View) func(*Report, *Value, *Stream[T]) bool {
	return Refuse[Stream[T]]
}
