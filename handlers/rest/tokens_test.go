package rest

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/auth"
)

// token is a token {"alg":"HS256"} {"exp":1795000600,"iat":1795000000,
// "sun":"alice"}, with an invalid signature.
const token = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTUwMDA2MDAsImlhdCI6MTc5NTAwMDAwMCwic3VuIjoiYWxpY2UifQ.c2lnbmF0dXJlc2lnbmF0dXJlc2lnbmF0dXJlc2lnbmE"

// anotherToken is a token whose header contains spaces and line ends.
var anotherToken = base64.RawURLEncoding.EncodeToString([]byte("{\n  \"alg\": \"RS256\",\n  \"typ\": \"JWT\"\n}")) + "." + strings.SplitN(token, ".", 2)[1]

// TestNoParameterIsNamedLikeToken checks that no parameter of an endpoint has a
// name in tokenNames.
func TestNoParameterIsNamedLikeToken(t *testing.T) {
	count := 0
	for _, e := range api.Endpoints {
		for _, v := range api.Versions {
			for _, p := range e.Params.Shape(schema.View{Version: v}).Fields {
				count++
				if tokenNames[strings.ReplaceAll(strings.ToLower(p.Name), "_", "-")] {
					t.Errorf("%s has a parameter %s", e.ID, p.Name)
				}
			}
		}
	}
	if count < 5 {
		t.Errorf("%d parameters", count)
	}
}

func TestRedact(t *testing.T) {
	for _, tt := range [][2]string{
		{"", ""},
		{"no token here", "no token here"},
		{token, redacted},
		{anotherToken, redacted},
		{`expected integer, got string "` + token + `", 3`, `expected integer, got string "` + redacted + `", 3`},
		{token + " and " + token[21:], redacted + " and " + redacted},
		{"/job/" + token + "/x", "/job/" + redacted},
		{"eyJ", "eyJ"},
		{"eyJhbGciOiJIUzI", "eyJhbGciOiJIUzI"}, // too short for a token
		{"eyJhbGciOiJIUzI1", redacted},
		{"monkeyJamboree1234567890", "monkeyJamboree1234567890"},
		{"eyes-and-ewoks.example.com", "eyes-and-ewoks.example.com"},
	} {
		if got := Redact(tt[0]); got != tt[1] {
			t.Errorf("%q: %q, want %q", tt[0], got, tt[1])
		}
	}
}

// FuzzRedact checks that the result of redact contains nothing that looks like
// a token, and that redact does not change a text without tokens.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"", token, anotherToken, "eyJhbGciOiJIUzI1 eyJhbGciOiJIUzI1", "say \"" + token + "\"", "ewoeyJhbGciOiJIUzI1ew"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Redact(s)
		if from, to := findToken(got); from != to {
			t.Errorf("%q: %q", s, got)
		}
		if from, to := findToken(s); from == to && got != s {
			t.Errorf("%q: %q", s, got)
		}
	})
}

// BenchmarkCheckURLToken measures the check of a typical URL.
func BenchmarkCheckURLToken(b *testing.B) {
	u := &url.URL{Path: "/sched/v0.0.42/node/node-0001.example.com"}
	for b.Loop() {
		if err := checkURLToken(u); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRefusedText checks that the answer to a request with a token in its URL
// contains only our own words.
func TestRefusedText(t *testing.T) {
	err := checkURLToken(&url.URL{Path: "/sched/v0.0.42/nodes", RawQuery: "token=" + token})
	if err == nil || err.Error() != auth.Refused+": a token in the query" {
		t.Error(err)
	}
}

// TestMethodIsNoPlace checks that a token is not logged if a client sends it as
// the method.
func TestMethodIsNoPlace(t *testing.T) {
	var log bytes.Buffer
	site := newSite(0)
	site.Log = slog.New(slog.NewTextHandler(&log, nil))
	if w := site.serve(newRequest(token, "/sched/v0.0.42/jobs", "")); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("status %d", w.Code)
	}
	if text := log.String(); strings.Contains(text, token[:20]) || !strings.Contains(text, `method="(a token)"`) {
		t.Error(text)
	}
}
