package schema

import (
	"strings"
	"testing"
)

// TestRepeated checks that values whose text is kept are written like all
// others, in each layout.
func TestRepeated(t *testing.T) {
	type pair struct{ a, b int64 }
	plain := Object("pair", func() Fields[pair] {
		return Fields[pair]{
			Show("a", Int64[int64], func(p *pair) int64 { return p.a }, "A"),
			Show("b", List(Int64[int64]), func(p *pair) []int64 { return []int64{p.b, p.b} }, "B"),
		}
	})
	kept := Repeated(plain.Type, 10, func(p *pair) int {
		if p.a < 0 || p.a > 4 || p.b < 0 || p.b > 1 {
			return -1
		}
		return int(2*p.a + p.b)
	})
	list := []pair{{1, 0}, {1, 1}, {4, 0}, {5, 0}, {1, 0}, {-1, 0}, {1, 1}, {4, 1}}
	v := View{Version: 43}
	for name, encoder := range map[string]func(*strings.Builder) flusher{
		"compact JSON":  func(b *strings.Builder) flusher { return NewJSONWriter(b, Compact) },
		"indented JSON": func(b *strings.Builder) flusher { return NewJSONWriter(b, Pretty) },
		"YAML":          func(b *strings.Builder) flusher { return NewYAMLWriter(b, Compact) },
	} {
		write := func(typ func() Type[pair]) string {
			var b strings.Builder
			e := encoder(&b)
			List(typ)().Renderer(v)(e, &list)
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if want, got := write(plain.Type), write(kept); want != got {
			t.Errorf("%s:\nwant %s\ngot  %s", name, want, got)
		}
	}
}

type flusher interface {
	Encoder
	Flush() error
}
