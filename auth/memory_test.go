package auth

import (
	"fmt"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	long := now.Add(time.Hour)
	key := acceptance{"controller", hashOf("token"), "bob"}
	for _, test := range []struct {
		name    string
		expires time.Time
		after   time.Duration
		want    bool
	}{
		{"at once", long, 0, true},
		{"nearly a minute later", long, memoryTTL - 1, true},
		{"a minute later", long, memoryTTL, false},
		{"before the token's end", now.Add(10 * time.Second), 10*time.Second - 1, true},
		{"at the token's end", now.Add(10 * time.Second), 10 * time.Second, false},
		{"a token that is in its leeway", now.Add(-time.Second), 0, false},
	} {
		var m memory[acceptance]
		if m.has(key, now) {
			t.Errorf("%s: an empty memory has the entry", test.name)
		}
		m.add(key, test.expires, now, m.removalCount())
		if got := m.has(key, now.Add(test.after)); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
	if memoryTTL > time.Minute {
		t.Errorf("entries are remembered for %v, want at most a minute", memoryTTL)
	}
}

// TestMemoryTellsApart checks that an answer is used only for the daemon, token
// and user name for which it was remembered.
func TestMemoryTellsApart(t *testing.T) {
	var m memory[acceptance]
	key := acceptance{"controller", hashOf("token"), "bob"}
	m.add(key, now.Add(time.Hour), now, m.removalCount())
	for name, other := range map[string]acceptance{
		"daemon":  {"accounting", key.token, key.actAs},
		"token":   {key.daemon, hashOf("token "), key.actAs},
		"act-as":  {key.daemon, key.token, "alice"},
		"no name": {key.daemon, key.token, ""},
	} {
		if m.has(other, now) {
			t.Errorf("entries with another %s are not distinguished", name)
		}
		m.drop(other)
	}
	if !m.has(key, now) {
		t.Error("removed together with another entry")
	}
	m.drop(key)
	if m.has(key, now) {
		t.Error("the entry is still there")
	}
	new(memory[acceptance]).drop(key)
}

// TestMemoryTakenBackMeanwhile checks that an answer is not remembered if any
// entry was dropped after the question was sent. Such an answer may be based on
// the daemon's previous keys.
func TestMemoryTakenBackMeanwhile(t *testing.T) {
	key, other := acceptance{"controller", hashOf("token"), "bob"}, acceptance{"accounting", hashOf("another"), ""}
	for name, remove := range map[string]func(*memory[acceptance]){
		"it":        func(m *memory[acceptance]) { m.drop(key) },
		"something": func(m *memory[acceptance]) { m.drop(other) },
	} {
		var m memory[acceptance]
		removals := m.removalCount()
		remove(&m)
		m.add(key, now.Add(time.Hour), now, removals)
		if m.has(key, now) {
			t.Errorf("%s was removed, but an earlier acceptance is remembered", name)
		}
		m.add(key, now.Add(time.Hour), now, m.removalCount())
		if !m.has(key, now) {
			t.Errorf("%s was removed, and a later acceptance is not remembered", name)
		}
	}
}

// TestMemoryAndTheClock checks that entries are not kept longer if the wall
// clock is set back. Their expiry uses the monotonic clock.
func TestMemoryAndTheClock(t *testing.T) {
	var m memory[acceptance]
	key, now := acceptance{"controller", hashOf("token"), "bob"}, time.Now()
	for _, expires := range []time.Time{now.Round(0).Add(30 * time.Second), now.Round(0).Add(time.Hour)} {
		m.add(key, expires, now, m.removalCount())
		if expiry := m.expiry[key]; expiry == expiry.Round(0) {
			t.Errorf("a token that expires in %v is remembered by the wall clock", expires.Sub(now))
		}
	}
	clear(m.expiry)
	m.add(key, now.Round(0).Add(-time.Second), now, m.removalCount())
	if len(m.expiry) > 0 {
		t.Error("an expired entry takes space")
	}
}

// TestMemoryIsBounded checks that the memory does not exceed its maximum size,
// always contains the newest token, and removes expired tokens first.
func TestMemoryIsBounded(t *testing.T) {
	var m memory[acceptance]
	entry := func(i int) acceptance { return acceptance{"controller", hashOf(fmt.Sprint(i)), ""} }
	long := now.Add(time.Hour)
	for i := range maxRemembered / 2 {
		m.add(entry(i), long, now, m.removalCount())
	}
	for i := range maxRemembered / 2 {
		m.add(entry(maxRemembered+i), now.Add(time.Second), now, m.removalCount())
	}
	later := now.Add(2 * time.Second) // by this time, the second half of the entries has expired
	for i := range maxRemembered / 2 {
		m.add(entry(2*maxRemembered+i), long, later, m.removalCount())
	}
	for i := range maxRemembered / 2 {
		if !m.has(entry(i), later) || !m.has(entry(2*maxRemembered+i), later) {
			t.Fatalf("entry %d was removed before an expired one", i)
		}
	}
	for i := range 3 * maxRemembered {
		m.add(entry(-i-1), long, later, m.removalCount())
		if len(m.expiry) > maxRemembered || !m.has(entry(-i-1), later) {
			t.Fatalf("%d in the table after %d more, of %d; the newest in it: %v", len(m.expiry), i+1, maxRemembered, m.has(entry(-i-1), later))
		}
	}
	if len(m.expiry) < maxRemembered/2 {
		t.Errorf("only %d entries are left", len(m.expiry))
	}
}
