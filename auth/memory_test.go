package auth

import (
	"fmt"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	long := now.Add(time.Hour)
	it := vouched{"controller", hashOf("token"), "bob"}
	for _, test := range []struct {
		name    string
		expires time.Time
		after   time.Duration
		want    bool
	}{
		{"at once", long, 0, true},
		{"nearly a minute later", long, remembered - 1, true},
		{"a minute later", long, remembered, false},
		{"before the token's end", now.Add(10 * time.Second), 10*time.Second - 1, true},
		{"at the token's end", now.Add(10 * time.Second), 10 * time.Second, false},
		{"a token that is in its leeway", now.Add(-time.Second), 0, false},
	} {
		var m memory
		if m.has(it, now) {
			t.Errorf("%s: an empty memory has it", test.name)
		}
		m.add(it, test.expires, now)
		if got := m.has(it, now.Add(test.after)); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
	if remembered > time.Minute {
		t.Errorf("remembers %v, a minute is promised", remembered)
	}
}

// Each of the three counts.
func TestMemoryTellsApart(t *testing.T) {
	var m memory
	it := vouched{"controller", hashOf("token"), "bob"}
	m.add(it, now.Add(time.Hour), now)
	for name, other := range map[string]vouched{
		"daemon":  {"accounting", it.token, it.actAs},
		"token":   {it.daemon, hashOf("token "), it.actAs},
		"act-as":  {it.daemon, it.token, "alice"},
		"no name": {it.daemon, it.token, ""},
	} {
		if m.has(other, now) {
			t.Errorf("another %s is taken for the same", name)
		}
		m.drop(other)
	}
	if !m.has(it, now) {
		t.Error("forgotten with another")
	}
	m.drop(it)
	if m.has(it, now) {
		t.Error("still there")
	}
	m.add(it, now.Add(time.Hour), now)
	m.clear()
	if m.has(it, now) {
		t.Error("still there after all were to be forgotten")
	}
	new(memory).clear()
	new(memory).drop(it)
}

// However many tokens are sent, the table has its bound; the newest is always in it, and what
// counts no more goes first.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	one := func(i int) vouched { return vouched{"controller", hashOf(fmt.Sprint(i)), ""} }
	long := now.Add(time.Hour)
	for i := range mostRemember / 2 {
		m.add(one(i), long, now)
	}
	for i := range mostRemember / 2 {
		m.add(one(mostRemember+i), now.Add(time.Second), now)
	}
	later := now.Add(2 * time.Second) // the second half counts no more
	for i := range mostRemember / 2 {
		m.add(one(2*mostRemember+i), long, later)
	}
	for i := range mostRemember / 2 {
		if !m.has(one(i), later) || !m.has(one(2*mostRemember+i), later) {
			t.Fatalf("%d gave way to what counts no more", i)
		}
	}
	for i := range 3 * mostRemember {
		m.add(one(-i-1), long, later)
		if len(m.until) > mostRemember || !m.has(one(-i-1), later) {
			t.Fatalf("%d in the table after %d more, of %d; the newest in it: %v", len(m.until), i+1, mostRemember, m.has(one(-i-1), later))
		}
	}
	if len(m.until) < mostRemember/2 {
		t.Errorf("only %d are left", len(m.until))
	}
}
