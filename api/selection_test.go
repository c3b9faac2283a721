package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TestSelectFields checks for each field of each list that an answer with this
// field alone is the part of the whole answer that the field's path names. To
// test every version takes too long, and the tables differ most between these.
func TestSelectFields(t *testing.T) {
	for _, view := range []schema.View{{Version: V40, Spelling: schema.Slurm}, {Version: V43}, {Version: V45, Spelling: schema.Slurm}} {
		t.Run(view.Version.String(), func(t *testing.T) {
			users, records := Users(Numbers{}), &Records{Users: Numbers{}}
			selectEach(t, view, Jobs, &JobsAnswer{Jobs: schema.One(&JobRow{Job: filled[model.Job](), Users: users})})
			selectEach(t, view, Nodes, &NodesAnswer{Nodes: schema.One(&NodeRow{Node: filled[model.Node](), Users: users})})
			selectEach(t, view, Partitions, &PartitionsAnswer{Partitions: schema.One(filled[model.Partition]())})
			selectEach(t, view, Reservations, &ReservationsAnswer{Reservations: schema.One(filled[model.Reservation]())})
			selectEach(t, view, Licenses, &LicensesAnswer{Licenses: schema.One(filled[model.License]())})
			selectEach(t, view, AccountingJobs, &AccountingJobsAnswer{Jobs: schema.One(&AccountingJobRow{AccountingJob: filled[model.AccountingJob](), Records: records})})
			selectEach(t, view, Accounts, &AccountsAnswer{Accounts: schema.One(filled[model.Account]())})
			selectEach(t, view, UserList, &UsersAnswer{Users: schema.One(filled[model.User]())})
			selectEach(t, view, QOSList, &QOSAnswer{QOS: schema.One(&QOSRow{QOS: filled[model.QOS](), Records: records})})
			selectEach(t, view, Associations, &AssociationsAnswer{Associations: schema.One(&AssociationRow{Association: filled[model.Association](), Records: records})})
			selectEach(t, view, Clusters, &ClustersAnswer{Clusters: schema.One(&ClusterRow{Cluster: filled[model.Cluster](), Records: records})})
			selectEach(t, view, WCKeys, &WCKeysAnswer{WCKeys: schema.One(filled[model.WCKey]())})
			selectEach(t, view, TRESList, &TRESAnswer{TRES: schema.One(filled[model.TRES]())})
			selectEach(t, view, Instances, &InstancesAnswer{Instances: schema.One(filled[model.Instance]())})
		})
	}
}

func selectEach[O any](t *testing.T, v schema.View, table *AnswerType[O], answer *O) {
	t.Helper()
	whole := rendered(t, table, v, answer)
	name := table.Shape(v).Fields[0].Name
	entry := whole[name].([]any)[0]
	for _, path := range slices.Sorted(maps.Keys(pathsIn("", table.Shape(v).Fields[0].Shape.Items))) {
		part := v
		var err error
		if part.Only, err = table.Select(v, []string{path}); err != nil {
			t.Fatal(err)
		}
		got := rendered(t, table, part, answer)
		if d := cmp.Diff(projection(entry, strings.Split(path, ".")), got[name].([]any)[0]); d != "" {
			t.Fatalf("%s of %s: %s", path, name, d)
		}
		got[name] = whole[name]
		if d := cmp.Diff(whole, got); d != "" {
			t.Fatalf("beside %s: %s", name, d)
		}
	}
}

// pathsIn returns the paths of all fields in a shape, and of their own fields.
func pathsIn(prefix string, s *schema.Shape) map[string]bool {
	list := map[string]bool{}
	for s.Kind == "array" && s.Items != nil {
		s = s.Items
	}
	for _, p := range s.Fields {
		list[prefix+p.Name] = true
		maps.Copy(list, pathsIn(prefix+p.Name+".", p.Shape))
	}
	return list
}

// projection returns the part of a value that a path names.
func projection(value any, path []string) any {
	switch x := value.(type) {
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = projection(x[i], path)
		}
		return list
	case map[string]any:
		if len(path) == 0 {
			return x
		}
		if inner, ok := x[path[0]]; ok {
			return map[string]any{path[0]: projection(inner, path[1:])}
		}
		return map[string]any{} // an object that lacks the member in this version
	}
	return value
}

func rendered[O any](t *testing.T, table *AnswerType[O], v schema.View, answer *O) map[string]any {
	t.Helper()
	var out bytes.Buffer
	w := schema.NewJSONWriter(&out, schema.Compact)
	table.Renderer(v)(w, answer)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(out.Bytes(), &body); err != nil {
		t.Fatalf("%v in %.300s", err, out.Bytes())
	}
	return body
}

// filled returns a T in which every list has two elements, and no number or
// text is empty.
func filled[T any]() *T {
	var o T
	fill(reflect.ValueOf(&o).Elem())
	return &o
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("3")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// TestSelectRefuses checks the errors about fields that do not exist.
func TestSelectRefuses(t *testing.T) {
	for path, want := range map[string]string{
		"jobid":             `unknown field "jobid"; did you mean job_id?`,
		"job_id.number":     `field "job_id" has no fields of its own`,
		"cpus.numbr":        `unknown field "cpus.numbr"; did you mean cpus.number?`,
		"":                  "empty name of a field",
		"cpus.":             "empty name of a field",
		"time.limit":        `unknown field "time"`,
		"exit_code.signal.": "empty name of a field",
	} {
		_, err := Jobs.Select(schema.View{Version: V45}, []string{"cpus", path})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
}
