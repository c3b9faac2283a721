package handlers

import (
	"testing"

	"schedrestd/model"
)

// TestCheckLimits checks that a change of one limit is made again if it has
// overwritten another client's change of another limit.
func TestCheckLimits(t *testing.T) {
	for _, tt := range []struct {
		name, own, committed string
		want                 error
	}{
		{"the same", "1=5,2=7", "1=4,2=7", nil},
		{"a new limit", "1=5", "", nil},
		{"another client's limit is missing", "1=5", "1=4,2=7", model.ErrRestart},
		{"another client's limit is old", "1=5,2=6", "1=4,2=7", model.ErrRestart},
		{"a limit that another client removed", "1=5,2=6", "1=4", model.ErrRestart},
		{"a removed limit", "2=7", "1=4,2=7", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			a := config(f).Accounting.(accounts)
			f.recorded.qos[1].MaxTRESPJ = tt.own
			saved := f.recorded.lists
			saved.qos = append([]model.QOS(nil), saved.qos...)
			saved.qos[1].MaxTRESPJ = tt.committed
			f.recorded.saved = &saved
			list := func(l model.Listing) error { return a.list(model.Credential{}, l) }
			others := func(l model.Listing) error { return a.List(t.Context(), model.Credential{}, l) }
			got := checkLimits(list, others, model.QOSFilter{Names: []string{"fast"}}, &model.QOS{MaxTRESPJ: "1=5"})
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
