package auth

import (
	"fmt"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	long := now.Add(time.Hour)
	it := acceptance{"controller", hashOf("token"), "bob"}
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
		var m memory[acceptance]
		if m.has(it, now) {
			t.Errorf("%s: an empty memory has the entry", test.name)
		}
		m.add(it, test.expires, now, m.asking())
		if got := m.has(it, now.Add(test.after)); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
	if remembered > time.Minute {
		t.Errorf("entries are remembered for %v, want at most a minute", remembered)
	}
}

// TestMemoryTellsApart checks that entries with a different daemon, token or
// name are different.
func TestMemoryTellsApart(t *testing.T) {
	var m memory[acceptance]
	it := acceptance{"controller", hashOf("token"), "bob"}
	m.add(it, now.Add(time.Hour), now, m.asking())
	for name, other := range map[string]acceptance{
		"daemon":  {"accounting", it.token, it.actAs},
		"token":   {it.daemon, hashOf("token "), it.actAs},
		"act-as":  {it.daemon, it.token, "alice"},
		"no name": {it.daemon, it.token, ""},
	} {
		if m.has(other, now) {
			t.Errorf("entries with another %s are not distinguished", name)
		}
		m.drop(other)
	}
	if !m.has(it, now) {
		t.Error("removed together with another entry")
	}
	m.drop(it)
	if m.has(it, now) {
		t.Error("the entry is still there")
	}
	new(memory[acceptance]).drop(it)
}

// TestMemoryTakenBackMeanwhile checks that an answer is not remembered if any
// entry was removed after the question was sent. The answer may be based on the
// previous keys.
func TestMemoryTakenBackMeanwhile(t *testing.T) {
	it, other := acceptance{"controller", hashOf("token"), "bob"}, acceptance{"accounting", hashOf("another"), ""}
	for name, takeBack := range map[string]func(*memory[acceptance]){
		"it":        func(m *memory[acceptance]) { m.drop(it) },
		"something": func(m *memory[acceptance]) { m.drop(other) },
	} {
		var m memory[acceptance]
		asked := m.asking()
		takeBack(&m)
		m.add(it, now.Add(time.Hour), now, asked)
		if m.has(it, now) {
			t.Errorf("%s was removed, but an earlier acceptance is remembered", name)
		}
		m.add(it, now.Add(time.Hour), now, m.asking())
		if !m.has(it, now) {
			t.Errorf("%s was removed, and a later acceptance is not remembered", name)
		}
	}
}

// TestMemoryAndTheClock checks that setting the clock back does not extend
// entries, because they use the monotonic clock.
func TestMemoryAndTheClock(t *testing.T) {
	var m memory[acceptance]
	it, now := acceptance{"controller", hashOf("token"), "bob"}, time.Now()
	for _, expires := range []time.Time{now.Round(0).Add(30 * time.Second), now.Round(0).Add(time.Hour)} {
		m.add(it, expires, now, m.asking())
		if until := m.until[it]; until == until.Round(0) {
			t.Errorf("a token that expires in %v is remembered by the wall clock", expires.Sub(now))
		}
	}
	clear(m.until)
	m.add(it, now.Round(0).Add(-time.Second), now, m.asking())
	if len(m.until) > 0 {
		t.Error("an expired entry takes space")
	}
}

// TestMemoryIsBounded checks that the memory has a maximum size, always
// contains the newest token, and removes expired tokens first.
func TestMemoryIsBounded(t *testing.T) {
	var m memory[acceptance]
	one := func(i int) acceptance { return acceptance{"controller", hashOf(fmt.Sprint(i)), ""} }
	long := now.Add(time.Hour)
	for i := range mostRemember / 2 {
		m.add(one(i), long, now, m.asking())
	}
	for i := range mostRemember / 2 {
		m.add(one(mostRemember+i), now.Add(time.Second), now, m.asking())
	}
	later := now.Add(2 * time.Second) // at this time, the second half has expired
	for i := range mostRemember / 2 {
		m.add(one(2*mostRemember+i), long, later, m.asking())
	}
	for i := range mostRemember / 2 {
		if !m.has(one(i), later) || !m.has(one(2*mostRemember+i), later) {
			t.Fatalf("entry %d was removed before an expired one", i)
		}
	}
	for i := range 3 * mostRemember {
		m.add(one(-i-1), long, later, m.asking())
		if len(m.until) > mostRemember || !m.has(one(-i-1), later) {
			t.Fatalf("%d in the table after %d more, of %d; the newest in it: %v", len(m.until), i+1, mostRemember, m.has(one(-i-1), later))
		}
	}
	if len(m.until) < mostRemember/2 {
		t.Errorf("only %d entries are left", len(m.until))
	}
}
