package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestLongHostlists checks that a short request can't make the gateway expand host
// lists to very many or very long names, which would take all memory.
func TestLongHostlists(t *testing.T) {
	site := config(demo())
	for text, want := range map[string]int{
		`"n[1-65536]"`:                 http.StatusOK,
		`"n[1-65537]"`:                 http.StatusUnprocessableEntity,
		`["n[1-40000]", "n[1-40000]"]`: http.StatusUnprocessableEntity,
		fmt.Sprintf(`"%s[1-10]"`, strings.Repeat("n", 250)):                         http.StatusOK,
		fmt.Sprintf(`["%s[1-8000]", "m[1-8000]"]`, strings.Repeat("n", 250)):        http.StatusOK,
		fmt.Sprintf(`["%[1]s[1-8000]", "%[1]s[1-8000]"]`, strings.Repeat("n", 250)): http.StatusUnprocessableEntity,
		fmt.Sprintf(`"%s[1-65536]"`, strings.Repeat("a", 80_000)):                   http.StatusUnprocessableEntity,
		fmt.Sprintf(`"n[%s1-65536]"`, strings.Repeat("0", 80_000)):                  http.StatusUnprocessableEntity,
		`"` + strings.Repeat("[0]", 110_000) + `"`:                                  http.StatusUnprocessableEntity,
	} {
		if w := serve(t, site, request(http.MethodPost, "/util/v0.0.45/hostnames", `{"hostlist": `+text+`}`)); w.Code != want {
			t.Errorf("%.30s…: status %d, want %d: %.200s", text, w.Code, want, w.Body)
		}
	}
}
