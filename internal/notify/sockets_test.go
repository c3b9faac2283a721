package notify

import (
	"strings"
	"testing"
)

// TestPassed checks that descriptors are used only if the service manager
// announces them to this process.
func TestPassed(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
		bad  string
	}{
		{name: "nothing"},
		{name: "another process's", env: map[string]string{"LISTEN_FDS": "2", "LISTEN_PID": "8"}},
		{name: "nobody's", env: map[string]string{"LISTEN_FDS": "2"}},
		{name: "not a number", env: map[string]string{"LISTEN_FDS": "x", "LISTEN_PID": "7"}, bad: "LISTEN_FDS=x"},
		{name: "negative", env: map[string]string{"LISTEN_FDS": "-1", "LISTEN_PID": "7"}, bad: "LISTEN_FDS=-1"},
		{name: "too many", env: map[string]string{"LISTEN_FDS": "4000000000", "LISTEN_PID": "7"}, bad: "LISTEN_FDS=4000000000"},
		{name: "none", env: map[string]string{"LISTEN_FDS": "0", "LISTEN_PID": "7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, err := passedSockets(func(name string) string { return tt.env[name] }, 7)
			if len(files) > 0 || (err != nil) != (tt.bad != "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%v, %v", files, err)
			}
		})
	}
}
