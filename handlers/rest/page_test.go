package rest

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"schedrestd/api"
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

// TestHashOfQuery checks that the tokens of different lists differ.
func TestHashOfQuery(t *testing.T) {
	seen := map[string]string{}
	for _, query := range []string{"", "a=", "a=b", "a=b&a=c", "a=&b=c", "a=b&b=c", "a=&a=b&a=c", "a=&b=&c=", "a=&a=b&c=", "a=%22b", "a=%22&b=%22", "b=a"} {
		c := &Call{request: request{match: match{route: &Route{Endpoint: &api.Endpoint{ID: "get_jobs"}}}, r: httptest.NewRequest(http.MethodGet, "/jobs?"+query, nil)}}
		doc, err := c.paramsAsDocument()
		if err != nil {
			t.Fatal(err)
		}
		hash := string(c.hashQuery(doc))
		if other, ok := seen[hash]; ok {
			t.Errorf("%s has the hash of %s", query, other)
		}
		seen[hash] = query
	}
}
