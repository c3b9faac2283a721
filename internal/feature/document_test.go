package feature

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatuses(t *testing.T) {
	const hint = "a class such as 4XX"
	tests := []struct {
		value string
		want  []string
		error string
	}{
		{value: ""},
		{value: " , "},
		{value: "200,default", want: DefaultStatuses},
		{value: "200, 401,404 ,401,default,", want: []string{"200", "401", "404", "default"}},
		{value: "2XX,599", want: []string{"2XX", "599"}},
		{value: "200,20", error: `X: unknown response "20"`},
		{value: "600", error: `"600"`},
		{value: "099", error: `"099"`},
		{value: "2X0", error: `"2X0"`},
		{value: "4xx", error: `"4xx"`},
		{value: "+20", error: `"+20"`},
		{value: "OK", error: `"OK"`},
		{value: "200;default", error: `"200;default"`},
	}
	for _, tt := range tests {
		got, err := ParseStatuses("X", tt.value)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", tt.value, diff)
		}
		checkError(t, tt.value, err, tt.error, hint)
	}
}
