package rest

import (
	"reflect"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestMemoryOf checks that the memory of an entry includes its texts and lists.
func TestMemoryOf(t *testing.T) {
	type part struct{ text string }
	type entry struct {
		name  string
		bytes []byte
		parts []part
		names []string
		one   *part
		none  *part
		n     [4]int
	}
	e := entry{name: "12345", bytes: make([]byte, 100), parts: []part{{"1"}, {"22"}}, names: []string{"333"}, one: &part{"4444"}, none: nil, n: [4]int{}}
	want := int(reflect.TypeFor[entry]().Size()) + 5 + 100 + 2*16 + 3 + 16 + 3 + 16 + 4
	if got := memoryOf(reflect.ValueOf(&e)); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	plain := memoryOf(reflect.ValueOf(&model.Job{}))
	if got := memoryOf(reflect.ValueOf(&model.Job{Dependency: strings.Repeat("x", 1<<17)})); got != plain+1<<17 || plain < 1000 {
		t.Errorf("a job with a long text: %d bytes, a job without: %d", got, plain)
	}
}

func BenchmarkMemoryOf(b *testing.B) {
	job := &model.Job{Name: "a job"}
	for b.Loop() {
		memoryOf(reflect.ValueOf(job))
	}
}
