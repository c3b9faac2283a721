package dispatch

import (
	"net/netip"
	"testing"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestSourceOf checks that all addresses in an IPv6 /64 are one source, and
// that all uids of a user are one source.
func TestSourceOf(t *testing.T) {
	names := resolved(t, func(q *work.Lookup) *work.LookupResult {
		if q.Number >= 1000 && q.Number < 2000 {
			return &work.LookupResult{ID: q.ID, Available: true, Name: "a user"}
		}
		return &work.LookupResult{ID: q.ID, Available: true}
	})
	o := newOwners(Options{Names: names, OwnerOf: func(uid uint32) uint32 {
		if uid >= 100_000 {
			return 1001
		}
		return uid
	}})
	of := func(addr string, uid uint32) admission.Source {
		a, _ := netip.ParseAddr(addr)
		var source admission.Source
		names.sync(func() { source = o.sourceOf(a, uid) })
		return source
	}
	for _, uid := range []uint32{1000, 1001, 3000, 3001} {
		of("", uid)
		await(t, "the user database was asked", func() (ok bool) { names.sync(func() { _, ok = names.cached(uid) }); return ok })
	}
	const tcp = ipc.NoID // the kernel does not know the user
	for _, tt := range []struct {
		name string
		a, b admission.Source
		same bool
	}{
		{"one address", of("192.0.2.1", tcp), of("192.0.2.1", tcp), true},
		{"two addresses", of("192.0.2.1", tcp), of("192.0.2.2", tcp), false},
		{"mapped into IPv6", of("192.0.2.1", tcp), of("::ffff:192.0.2.1", tcp), true},
		{"two mapped ones", of("::ffff:192.0.2.1", tcp), of("::ffff:192.0.2.2", tcp), false},
		{"one /64", of("2001:db8:0:1::1", tcp), of("2001:db8:0:1:ffff::2", tcp), true},
		{"two networks", of("2001:db8:0:1::1", tcp), of("2001:db8:0:2::1", tcp), false},
		{"loopback, of no known user", of("127.0.0.1", tcp), of("127.1.2.3", tcp), true},
		{"loopback of both kinds", of("127.0.0.1", tcp), of("::1", tcp), true},
		{"loopback and another address", of("127.0.0.1", tcp), of("192.0.2.1", tcp), false},
		{"a user on two addresses of loopback", of("127.0.0.1", 1000), of("127.9.9.9", 1000), true},
		{"two users on one", of("127.0.0.1", 1000), of("127.0.0.1", 1001), false},
		{"a user on loopback and on a UNIX socket", of("::1", 1000), of("", 1000), true},
		{"two users", of("", 1000), of("", 1001), false},
		{"a user and a subordinate uid", of("", 1001), of("", 100_007), true},
		{"two uids without a name", of("", 3000), of("127.0.0.1", 3001), true},
		{"a uid without a name and a user", of("", 3000), of("", 1000), false},
		{"root and an address", of("", 0), of("0.0.0.0", tcp), false},
	} {
		if tt.a == tt.b != tt.same {
			t.Errorf("%s: %s and %s", tt.name, tt.a, tt.b)
		}
	}
}

// TestUnprovedUids checks that only a limited number of uids count as separate
// sources before the user database has answered, and that they take nothing from a
// user who had a name before, even if the answer is no longer cached.
func TestUnprovedUids(t *testing.T) {
	const known = 70_000
	names := resolved(t, func(q *work.Lookup) *work.LookupResult {
		if q.Number == known {
			return &work.LookupResult{ID: q.ID, Available: true, Name: "a user"}
		}
		return &work.LookupResult{ID: q.ID}
	})
	o := newOwners(Options{Names: names, OwnerOf: func(uid uint32) uint32 { return uid }})
	names.sync(func() { o.sourceOf(netip.Addr{}, known) })
	await(t, "the user database was asked", func() (ok bool) { names.sync(func() { _, ok = names.cached(known) }); return ok })
	names.sync(func() { o.sourceOf(netip.Addr{}, known) })
	list := map[admission.Source]bool{}
	for uid := range uint32(10_000) {
		names.sync(func() { list[o.sourceOf(netip.Addr{}, uid)] = true })
	}
	if n := int(limit.AssumedUIDs.Burst); len(list) < n || len(list) > 2*n {
		t.Errorf("10000 uids are %d sources", len(list))
	}
	names.sync(func() {
		clear(names.cache)
		if s := o.sourceOf(netip.Addr{}, known); s != admission.User(known) {
			t.Errorf("a user who had a name is %s", s)
		}
	})
}
