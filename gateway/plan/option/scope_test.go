package option

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

// TestScopes checks the scopes of addresses, in arguments and in variables.
func TestScopes(t *testing.T) {
	tests := []struct {
		listen, scopes string
		addresses      []string
		entries        []string
		error          string
	}{
		{listen: "127.0.0.1:6820", addresses: []string{"127.0.0.1:6820"}},
		{listen: "127.0.0.1:6820,compute.read=127.0.0.1:6822", addresses: []string{"127.0.0.1:6820", "127.0.0.1:6822"}, entries: []string{"compute.read=127.0.0.1:6822"}},
		{listen: "slurmdb.read+compute.read=:6822", addresses: []string{":6822"}, entries: []string{"compute.read+slurmdb.read=[::]:6822"}},
		{listen: "compute.read=https://[2001:DB8::1]:443", addresses: []string{"https://[2001:DB8::1]:443"}, entries: []string{"compute.read=[2001:db8::1]:443"}},
		{listen: "compute.read=unix:/run/a=b", addresses: []string{"unix:/run/a=b"}, entries: []string{"compute.read=unix:/run/a=b"}},
		{listen: "unix:/run/a=b", addresses: []string{"unix:/run/a=b"}},
		{scopes: "compute.read=127.0.0.1:6822, compute.create=unix:/run/x", addresses: []string{}, entries: []string{"compute.read=127.0.0.1:6822", "compute.create=unix:/run/x"}},
		{listen: "compute.raed=127.0.0.1:6822", error: `"compute.raed" is not a scope; expected some of compute.read, `},
		{listen: "=127.0.0.1:6822", error: `"" is not a scope`},
		{listen: "compute.read=localhost:6822", error: "is a number"},
		{listen: "compute.read=127.0.0.1:0", error: "needs a port"},
		{listen: "compute.read=127.0.0.1", error: "no port"},
		{listen: "compute.read=127.0.0.1:1,compute.create=127.0.0.1:1", error: "has scopes already"},
		{listen: "compute.read=127.0.0.1:1", scopes: "compute.create=127.0.0.1:1", error: "has scopes already"},
		{scopes: "127.0.0.1:6822=compute.read", error: "is not a scope"},
		{scopes: "compute.read", error: "no port"},
		{scopes: " ", error: "has no entry"},
	}
	for _, tt := range tests {
		var o Options
		var err error
		if tt.listen != "" {
			err = o.setListen("SCHEDRESTD_LISTEN", tt.listen)
		}
		if err == nil && tt.scopes != "" {
			err = o.setScopes("SCHEDRESTD_SCOPES", tt.scopes)
		}
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) || errs.HintOf(err) == "" {
				t.Errorf("%q, %q: %v", tt.listen, tt.scopes, err)
			}
			continue
		}
		if d := cmp.Diff(tt.entries, o.Setup.Scopes); err != nil || d != "" || len(tt.addresses)+len(o.Listen) > 0 && !cmp.Equal(tt.addresses, o.Listen) {
			t.Errorf("%q, %q: %v, %q\n%s", tt.listen, tt.scopes, err, o.Listen, d)
		}
	}
}

// TestListenWithoutEffect checks that addresses and scopes in a variable that
// arguments replace do not vanish silently.
func TestListenWithoutEffect(t *testing.T) {
	for _, v := range []string{"compute.read=127.0.0.1:6822", "127.0.0.1:6823"} {
		o := Options{Listen: []string{"127.0.0.1:6822"}}
		if err := o.setListen("SCHEDRESTD_LISTEN", v); err != nil || len(o.WithoutEffect) != 1 || o.Setup.Scopes != nil {
			t.Errorf("%s: %v, %q, %q", v, err, o.WithoutEffect, o.Setup.Scopes)
		}
	}
}

// TestLongClaim checks that an issuer too long for the worker's setup is refused
// by its name.
func TestLongClaim(t *testing.T) {
	var o Options
	set := claim(&o.Setup.Issuer)
	if err := set("SCHEDRESTD_TOKEN_ISSUER", strings.Repeat("x", 255)); err != nil || len(o.Setup.Issuer) != 255 {
		t.Errorf("%v", err)
	}
	if err := set("SCHEDRESTD_TOKEN_ISSUER", strings.Repeat("x", 256)); err == nil || !strings.Contains(err.Error(), "SCHEDRESTD_TOKEN_ISSUER") {
		t.Errorf("%v", err)
	}
}
