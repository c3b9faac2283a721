package schema

import "sync/atomic"

// Repeated returns a type like typ for values that a list repeats many times,
// such as the cores of a job. The text of a value in compact JSON is kept, and
// written in one call. The function index returns a number below size that is
// different for different values, or -1 for values whose text is not kept.
func Repeated[T any](typ func() Type[T], size int, index func(*T) int) func() Type[T] {
	return func() Type[T] { return repeated[T]{typ(), size, index} }
}

type repeated[T any] struct {
	Type[T]
	size  int
	index func(*T) int
}

func (t repeated[T]) Renderer(v View) func(Encoder, *T) {
	render := t.Type.Renderer(v)
	if v.Only != nil { // such a renderer is used for one request
		return render
	}
	texts := make([]atomic.Pointer[string], t.size)
	return func(e Encoder, value *T) {
		j, ok := e.(*JSONWriter)
		i := t.index(value)
		if !ok || j.pretty || i < 0 {
			render(e, value)
			return
		}
		text := texts[i].Load()
		if text == nil {
			w := new(JSONWriter)
			render(w, value)
			s := string(w.buf)
			text = &s
			texts[i].Store(text)
		}
		j.comma()
		j.buf = append(j.buf, *text...)
		j.endValue()
	}
}
