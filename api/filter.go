package api

import (
	"net/http"
	"sync"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// IsFilter reports whether any operation, in any API version, has a parameter
// called name that narrows a list. An operation that lacks this parameter must
// refuse it. Otherwise the client would get more entries than it asked for.
func IsFilter(name string) bool { return filters()[name] }

// filters returns the names of the parameters with which clients narrow lists.
// It omits parameters that have no effect, and those in listFields.
var filters = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, v := range Versions {
		view := schema.View{Version: v}
		for _, e := range Endpoints {
			if e.Method != http.MethodGet || !e.In(v) {
				continue
			}
			for _, p := range e.Params.Shape(view).Fields {
				if !p.Ignored && !e.InPath(p.Name) {
					names[p.Name] = true
				}
			}
		}
		for _, f := range listFields(func(*NoParams) *model.Query { return nil }) {
			delete(names, schema.Name(f))
		}
	}
	return names
})
