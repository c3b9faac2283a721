package setting

import "testing"

// TestScopesOf checks which entry is that of a listener, in both orders.
func TestScopesOf(t *testing.T) {
	for _, list := range [][]string{{"all=[::]:1", "some=0.0.0.0:1", "local=[::]:2"}, {"local=[::]:2", "some=0.0.0.0:1", "all=[::]:1"}} {
		r := REST{Scopes: list}
		for listener, want := range map[string]string{"[::]:1": "all", "0.0.0.0:1": "some", "0.0.0.0:2": "local", "127.0.0.1:2": "", "0.0.0.0:3": ""} {
			if got, limited := r.ScopesOf(listener); got != want || limited != (want != "") {
				t.Errorf("%v, %s: %q, %v", list, listener, got, limited)
			}
		}
	}
}
