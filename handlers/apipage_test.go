package handlers

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"schedrestd/handlers/apipage"
	"schedrestd/internal/setting"
)

// TestAPIPage checks that the page's files are served without a token, and with
// the Content-Security-Policy, whether or not the client supports compression.
// If the page is disabled, its files must not be served.
func TestAPIPage(t *testing.T) {
	get := func(h http.Handler, method, path, coding string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		if coding != "" {
			r.Header.Set("Accept-Encoding", coding)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	enabled, disabled := New(Config{Pages: setting.Pages{Docs: true}}), New(Config{})
	for path, file := range apipage.Files() {
		for _, coding := range []string{"", "gzip", "zstd, gzip;q=0.5", "br, *", "gzip;q=0", "identity"} {
			w := get(enabled, "GET", "/"+path, coding)
			var body io.Reader = w.Body
			length := w.Body.Len()
			compressed := file.Gzipped && strings.ContainsAny(coding, "g*") && !strings.Contains(coding, "q=0,") && coding != "gzip;q=0"
			if got := w.Header().Get("Content-Encoding"); (got == "gzip") != compressed {
				t.Errorf("%s, %q: coding %q", path, coding, got)
			} else if compressed {
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			text, err := io.ReadAll(body)
			if err != nil || len(text) != file.Size() || w.Code != 200 {
				t.Errorf("%s, %q: status %d, %d bytes, %v", path, coding, w.Code, len(text), err)
			}
			for name, want := range map[string]string{"Content-Type": file.Media, "Content-Security-Policy": apipage.Policy, "X-Content-Type-Options": "nosniff",
				"Referrer-Policy": "same-origin", "Content-Length": strconv.Itoa(length)} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s, %q: %s %q, want %q", path, coding, name, got, want)
				}
			}
		}
		if w := get(enabled, "HEAD", "/"+path, ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != strconv.Itoa(file.Size()) {
			t.Errorf("HEAD %s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
		if w := get(enabled, "POST", "/"+path, ""); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, w.Code)
		}
		if w := get(disabled, "GET", "/"+path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s is served although it is disabled: %d", path, w.Code)
		}
	}
	if w := get(enabled, "GET", "/docs/", ""); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "../docs" {
		t.Errorf("/docs/: %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestRoot checks that a browser that requests the path / is sent to the page
// at /status, or to /docs if that page is disabled, and that other clients get
// 404, as all do if both pages are disabled.
func TestRoot(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, tt := range []struct {
		name, method, path, accept string
		docs                       bool
		status                     int
		location                   string
	}{
		{"browser", "GET", "/", browser, true, 302, "docs"},
		{"browser, HEAD", "HEAD", "/", browser, true, 302, "docs"},
		{"browser, several slashes", "GET", "//.//", browser, true, 302, "docs"},
		{"browser, POST", "POST", "/", browser, true, 405, ""},
		{"browser, page disabled", "GET", "/", browser, false, 404, ""},
		{"browser, another path", "GET", "/x", browser, true, 404, ""},
		{"any format", "GET", "/", "*/*", true, 404, ""},
		{"no header", "GET", "/", "", true, 404, ""},
		{"JSON", "GET", "/", "application/json", true, 404, ""},
		{"HTML refused", "GET", "/", "text/html;q=0, application/json", true, 404, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, nil)
			if tt.accept != "" {
				r.Header.Set("Accept", tt.accept)
			}
			w := serveRoot(Config{Pages: setting.Pages{Docs: tt.docs}}, r)
			if w.Code != tt.status || w.Header().Get("Location") != tt.location {
				t.Errorf("status %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), tt.status, tt.location)
			}
			location := strings.Replace(tt.location, "docs", "status", 1)
			if status := serveRoot(Config{Pages: setting.Pages{Docs: tt.docs, Status: true}}, r); tt.docs && (status.Code != tt.status || status.Header().Get("Location") != location) {
				t.Errorf("with the status page: status %d to %q, want %d to %q", status.Code, status.Header().Get("Location"), tt.status, location)
			}
		})
	}
}

func serveRoot(cfg Config, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	New(cfg).ServeHTTP(w, r)
	return w
}
