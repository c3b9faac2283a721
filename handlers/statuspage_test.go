package handlers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/setting"
	"schedrestd/web"
)

// TestStatusPage checks that the page's files are served without a token, with
// the Content-Security-Policy, compressed or not, and to clients that have them
// already only the news that they have not changed. If the page is disabled, its
// files must not be served.
func TestStatusPage(t *testing.T) {
	get := func(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	enabled, disabled := New(Config{Pages: setting.Pages{Status: true}}), New(Config{Pages: setting.Pages{Docs: true}})
	for path, file := range web.Files() {
		plain, gzipped := get(enabled, "/"+path), get(enabled, "/"+path, "Accept-Encoding", "gzip, br")
		if plain.Code != 200 || plain.Body.String() != file.Plain() || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: status %d, %d bytes", path, plain.Code, plain.Body.Len())
		}
		if gzipped.Code != 200 || gzipped.Body.String() != file.Body || gzipped.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s, compressed: status %d, %d bytes", path, gzipped.Code, gzipped.Body.Len())
		}
		for name, want := range map[string]string{"Content-Type": file.Media, "Content-Security-Policy": web.Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Vary": "Accept-Encoding", "Cache-Control": file.Caching, "Set-Cookie": "", "Content-Length": strconv.Itoa(file.Size())} {
			if got := plain.Header().Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", path, name, got, want)
			}
		}
		if file.Tag != "" {
			again := get(enabled, "/"+path, "If-None-Match", plain.Header().Get("ETag"), "Accept-Encoding", "gzip")
			if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
				t.Errorf("%s, known: status %d, %d bytes", path, again.Code, again.Body.Len())
			}
		}
		if w := get(disabled, "/"+path); w.Code != http.StatusNotFound {
			t.Errorf("%s is served although it is disabled: %d", path, w.Code)
		}
	}
	if w := get(enabled, "/status/"); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "../status" {
		t.Errorf("/status/: %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestOtherClusters checks the list of other clusters. Without the setting, it is
// empty.
func TestOtherClusters(t *testing.T) {
	for want, list := range map[string][]string{"[]": nil,
		`[["a","https://a.example.org"],["\u003ci\u003e","http://b:1/clusters/b"]]`: {"a=https://a.example.org/", "<i>=http://b:1/clusters/b"}} {
		w := httptest.NewRecorder()
		New(Config{Pages: setting.Pages{Status: true, Clusters: list}}).ServeHTTP(w, httptest.NewRequest("GET", "/status/clusters.json", nil))
		if w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %v %s", list, w.Code, w.Header(), w.Body)
		}
	}
}

// TestZone checks that the page gets the distance of the gateway's local time
// from UTC for each time of the last and the next year.
func TestZone(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"} {
		var err error
		if time.Local, err = time.LoadLocation(name); err != nil {
			t.Skip(err)
		}
		w := httptest.NewRecorder()
		New(Config{Pages: setting.Pages{Status: true}}).ServeHTTP(w, httptest.NewRequest("GET", "/status/zone.json", nil))
		var offsets []offset
		if err := json.Unmarshal(w.Body.Bytes(), &offsets); err != nil || w.Code != 200 || len(offsets) == 0 {
			t.Fatalf("%s: status %d, %s", name, w.Code, w.Body)
		}
		for day := -360; day < 360; day++ {
			at := time.Now().AddDate(0, 0, day)
			wantName, want := at.Zone()
			var got offset
			for _, o := range offsets {
				if o.From <= at.Unix() {
					got = o
				}
			}
			if got.Seconds != want || got.Name != wantName {
				t.Fatalf("%s, %s: %+v, want %d %s", name, at, got, want, wantName)
			}
		}
	}
}

// TestStatusFields checks that every version of the API that the page uses has
// the fields for which the page asks, in both spellings.
func TestStatusFields(t *testing.T) {
	text, err := os.ReadFile("../web/src/core/fields.json")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string][]string
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"jobs": "jobs/", "jobColumns": "jobs/", "job": "job/12", "nodes": "nodes/", "node": "node/n1", "partitions": "partitions/", "reservations": "reservations/", "shares": "shares"}
	recorded := map[string]string{"recorded": "jobs/?step=12&show_batch_script=true", "qos": "qos/"}
	if len(paths)+len(recorded) != len(fields) {
		t.Errorf("the page has %d lists of fields, the test %d", len(fields), len(paths)+len(recorded))
	}
	since := map[string]string{"partitions flags": "v0.0.45"} // as in web/src/core/lists.ts
	for _, version := range []string{"v0.0.43", "v0.0.44", "v0.0.45"} {
		for _, spelling := range []string{"sched", "slurm"} {
			check := func(name, path string) {
				address, query, _ := strings.Cut(path, "?")
				list := slices.DeleteFunc(slices.Clone(fields[name]), func(field string) bool { return version < since[name+" "+field] })
				w := serve(t, config(demo()), request(http.MethodGet, address+"?"+query+"&fields="+strings.Join(list, ","), ""))
				if w.Code != http.StatusOK {
					t.Errorf("%s of %s: status %d: %s", name, path, w.Code, w.Body)
				}
			}
			for name, path := range paths {
				check(name, "/"+spelling+"/"+version+"/"+path)
			}
			for name, path := range recorded {
				check(name, "/"+spelling+"db/"+version+"/"+path)
			}
		}
	}
}
