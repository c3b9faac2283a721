package handlers

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/model"
)

// tresLists returns the paths of all lists of trackable resources in a shape,
// such as "max/tres/total".
func tresLists(shape *schema.Shape, path string) (list []string) {
	for _, p := range shape.Fields {
		if p.Shape.Name == "tres_list" {
			list = append(list, strings.TrimPrefix(path+"/"+p.Name, "/"))
		} else {
			list = append(list, tresLists(p.Shape, path+"/"+p.Name)...)
		}
	}
	return list
}

// put sets the field with the given path in a JSON object.
func put(object map[string]any, path string, value any) {
	name, rest, isDeeper := strings.Cut(path, "/")
	if !isDeeper {
		object[name] = value
		return
	}
	inner := map[string]any{}
	object[name] = inner
	put(inner, rest, value)
}

// TestLimitRequests checks the text that reaches the daemon for each list of
// limits. The daemon keeps the limits that the text does not name. It removes
// those with the largest number. The text must not contain a sign: from Slurm
// 25.11 on, "2=-1" reduces a limit by one.
func TestLimitRequests(t *testing.T) {
	const removed = "18446744073709551615"
	forms := []struct{ name, list, want string }{
		{"one resource", `[{"type": "cpu", "count": 12}]`, "1=12"},
		{"one resource with its number", `[{"type": "mem", "id": 2, "count": 12}]`, "2=12"},
		{"zero", `[{"type": "cpu", "count": 0}]`, "1=0"},
		{"minus one", `[{"type": "cpu", "count": -1}]`, "1=" + removed},
		{"the word infinite", `[{"type": "mem", "count": "infinite"}]`, "2=" + removed},
		{"a number and a removal", `[{"type": "gres", "name": "gpu", "count": 3}, {"type": "mem", "count": -1}]`, "1001=3,2=" + removed},
		{"memory by its other name", `[{"type": "memory", "count": 5}]`, "2=5"},
		{"a resource that slurmdbd marks as deleted", `[{"type": "dynamic_offset", "count": 5}]`, "1000=5"},
		{"an empty list", `[]`, "1=" + removed + ",2=" + removed},
	}
	view := schema.View{Version: api.V45, Spelling: schema.Sched}
	for _, kind := range []struct {
		name  string
		shape *schema.Shape
		names map[string]any // fields that name the record
		set   func(*recorded, func(record reflect.Value))
		sent  func(change any) (any, any) // the record that was sent, and a blank one
	}{
		{"qos", api.QOS.Shape(view), map[string]any{"name": "fast"},
			func(r *recorded, set func(reflect.Value)) { set(reflect.ValueOf(&r.qos[1]).Elem()) },
			func(change any) (any, any) { return change.(model.Modify[model.QOS]).Record, model.BlankQOS() }},
		{"associations", api.Association.Shape(view), map[string]any{"account": "lab", "cluster": "demo", "user": ""},
			func(r *recorded, set func(reflect.Value)) { set(reflect.ValueOf(&r.associations[0]).Elem()) },
			func(change any) (any, any) {
				return change.(model.Modify[model.Association]).Record, model.BlankAssociation()
			}},
	} {
		paths := tresLists(kind.shape, "")
		if len(paths) < 7 {
			t.Fatalf("%s: only %d lists of limits: %q", kind.name, len(paths), paths)
		}
		fields := map[string]string{} // which field of the record each path changes
		for _, path := range paths {
			for _, form := range forms {
				t.Run(kind.name+"/"+path+"/"+form.name, func(t *testing.T) {
					f := demo()
					f.recorded.tres = append(f.recorded.tres, model.TRES{ID: 1000, Type: "dynamic_offset"})
					kind.set(&f.recorded, func(record reflect.Value) { // limits cpu and mem in all lists
						for i := range record.NumField() {
							if strings.Contains(record.Type().Field(i).Name, "TRES") {
								record.Field(i).SetString("1=50,2=1000")
							}
						}
					})
					row := maps.Clone(kind.names)
					put(row, path, json.RawMessage(form.list))
					body, err := json.Marshal(map[string]any{kind.name: []any{row}})
					if err != nil {
						t.Fatal(err)
					}
					w := serve(t, config(f), request(http.MethodPost, "/scheddb/v0.0.45/"+kind.name, string(body)))
					if w.Code != http.StatusOK || len(f.recorded.changes) != 1 {
						t.Fatalf("status %d, changes %v: %s", w.Code, f.recorded.changes, w.Body)
					}
					record, blank := kind.sent(f.recorded.changes[0])
					sent := map[string]any{}
					for i := range reflect.TypeOf(record).NumField() {
						got, unset := reflect.ValueOf(record).Field(i).Interface(), reflect.ValueOf(blank).Field(i).Interface()
						if !reflect.DeepEqual(got, unset) {
							sent[reflect.TypeOf(record).Field(i).Name] = got
						}
					}
					if len(sent) != 1 {
						t.Fatalf("the request has the fields %v, want one", sent)
					}
					for name, text := range sent {
						if fields[path] == "" {
							fields[path] = name
						}
						if d := cmp.Diff(map[string]any{fields[path]: form.want}, map[string]any{name: text}); d != "" {
							t.Errorf("the request (-want, +got):\n%s", d)
						}
					}
				})
			}
		}
		distinct := map[string]bool{}
		for _, name := range fields {
			distinct[name] = true
		}
		if len(distinct) != len(paths) {
			t.Errorf("%s: %d lists change %d fields: %v", kind.name, len(paths), len(distinct), fields)
		}
	}
}
