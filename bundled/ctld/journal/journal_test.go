package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func open(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func mustCommit(t *testing.T, j *Journal, entries ...Entry) {
	t.Helper()
	if err := j.Commit(entries...); err != nil {
		t.Fatal(err)
	}
}

// contents returns all values of j as key=value lines.
func contents(t *testing.T, j *Journal) string {
	t.Helper()
	var b strings.Builder
	err := j.Each(func(key string, value []byte) (uint32, error) {
		fmt.Fprintf(&b, "%s=%s\n", key, value)
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhatWasCommittedIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	mustCommit(t, j, Entry{Key: "a", Value: []byte("1")}, Entry{Key: "b", Value: []byte("2")})
	mustCommit(t, j, Entry{Key: "a", Value: []byte("3")}, Entry{Key: "empty", Value: []byte{}})
	mustCommit(t, j, Entry{Key: "b", Value: nil}, Entry{Key: "never", Value: nil})
	const want = "a=3\nempty=\n"
	if diff := cmp.Diff(want, contents(t, j)); diff != "" {
		t.Error("at once:", diff)
	}
	j.Close()
	if err := j.Commit(Entry{Key: "x", Value: []byte("y")}); !errors.Is(err, errClosed) {
		t.Errorf("commit after close: %v", err)
	}
	j = open(t, path)
	if diff := cmp.Diff(want, contents(t, j)); diff != "" {
		t.Error("after a restart:", diff)
	}
	if v, err := j.Get("a"); string(v) != "3" || err != nil {
		t.Errorf("Get: %q, %v", v, err)
	}
	if v, err := j.Get("b"); v != nil || err != nil {
		t.Errorf("Get of a forgotten key: %q, %v", v, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestRefusals(t *testing.T) {
	header := func(change func(h []byte)) []byte {
		h := appendHeader(nil, headerSize, 7)
		change(h)
		return h
	}
	sum := func(h []byte) { binary.BigEndian.PutUint32(h[28:], crc32.Checksum(h[:28], castagnoli)) }
	tests := []struct {
		name string
		file []byte
		want error
	}{
		{"empty", nil, errNotJournal},
		{"another kind of file", []byte("#!/bin/sh\necho not a journal, but long enough\n"), errNotJournal},
		{"newer format", header(func(h []byte) { h[11] = format + 1; sum(h) }), ErrNewer},
		{"newer format with another header", append(header(func(h []byte) { h[11] = 9; h[28]++ }), "more"...), ErrNewer},
		{"flipped bit in the header", header(func(h []byte) { h[20] ^= 1 }), ErrDamaged},
		{"shorter than when it was named", header(func(h []byte) { h[19] = 99; sum(h) }), ErrDamaged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			if err := os.WriteFile(path, tt.file, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %v with the path", err, tt.want)
			}
		})
	}
	t.Run("symbolic link", func(t *testing.T) {
		dir := t.TempDir()
		open(t, filepath.Join(dir, "real")).Close()
		os.Symlink("real", filepath.Join(dir, "journal"))
		if _, err := Open(filepath.Join(dir, "journal")); !errors.Is(err, unix.ELOOP) {
			t.Errorf("error %v, want ELOOP", err)
		}
	})
	t.Run("keys and sizes", func(t *testing.T) {
		j := open(t, filepath.Join(t.TempDir(), "journal"))
		for _, key := range []string{"", strings.Repeat("k", 256)} {
			if err := j.Commit(Entry{Key: key, Value: []byte("v")}); err == nil {
				t.Errorf("a key of %d bytes was accepted", len(key))
			}
		}
		if err := j.Commit(Entry{Key: "k", Value: make([]byte, maxPayload)}); !errors.Is(err, errTooBig) {
			t.Errorf("error %v, want ErrTooBig", err)
		}
	})
}

// TestTornEnd checks that a crash during a write loses no acknowledged change.
// The interrupted change must be found completely or not at all.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	j := open(t, path)
	mustCommit(t, j, Entry{Key: "a", Value: []byte("1")})
	mustCommit(t, j, Entry{Key: "b", Value: []byte("2")})
	before := j.size
	mustCommit(t, j, Entry{Key: "a", Value: []byte("last")}, Entry{Key: "c", Value: []byte("last")})
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkTorn := func(name string, file []byte, want string) {
		t.Helper()
		p := filepath.Join(dir, "torn")
		if err := os.WriteFile(p, file, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if diff := cmp.Diff(want, contents(t, j)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		mustCommit(t, j, Entry{Key: "d", Value: []byte("new")})
		j.Close()
		j = open(t, p)
		if diff := cmp.Diff(want+"d=new\n", contents(t, j)); diff != "" {
			t.Errorf("%s, after one more: %s", name, diff)
		}
		j.Close()
	}
	const without, with = "a=1\nb=2\n", "a=last\nb=2\nc=last\n"
	for n := before; n < int64(len(whole)); n++ {
		checkTorn(fmt.Sprintf("cut at %d", n), whole[:n], without)
		flipped := append([]byte(nil), whole...)
		flipped[n] ^= 0x10
		checkTorn(fmt.Sprintf("flipped at %d", n), flipped, without)
	}
	checkTorn("whole", whole, with)
	checkTorn("zeros after it", append(whole[:len(whole):len(whole)], make([]byte, 100)...), with)
	zeroed := append(append([]byte(nil), whole[:before]...), make([]byte, 50)...)
	checkTorn("size grew, data did not come", zeroed, without)
}

// TestFramesInValuesAreNotBelieved checks that Open does not report damage if
// the last frame is incomplete and contains a value that looks like frames.
func TestFramesInValuesAreNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var forged []byte
	for i := range 100 {
		forged = salt(i).appendFrame(forged, 1<<40, []Entry{{Key: "x", Value: []byte("y")}}, nil)
	}
	j := open(t, path)
	mustCommit(t, j, Entry{Key: "script", Value: forged})
	size := j.size
	j.Close()
	if err := os.Truncate(path, size-1); err != nil {
		t.Fatal(err)
	}
	j = open(t, path)
	if got := contents(t, j); got != "" || j.TornSize() == 0 {
		t.Errorf("contents %q, cut %d", got, j.TornSize())
	}
}

func TestDamageInTheMiddleIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	mustCommit(t, j, Entry{Key: "a", Value: []byte("acknowledged")})
	first := j.size
	mustCommit(t, j, Entry{Key: "b", Value: []byte("acknowledged later")})
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(headerSize); n < first; n++ {
		file := append([]byte(nil), whole...)
		file[n] ^= 0x40
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrDamaged) {
			t.Fatalf("flipped byte %d: error %v, want ErrDamaged", n, err)
		}
		if content, _ := os.ReadFile(path); len(content) != len(whole) {
			t.Fatalf("flipped byte %d: the file was changed", n)
		}
	}
}

func TestOutdatedFileIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	big := make([]byte, 100<<10)
	for i := range 40 {
		mustCommit(t, j, Entry{Key: "k", Value: append(big, byte(i))}, Entry{Key: fmt.Sprint("small", i%3), Value: []byte{byte(i)}})
	}
	if j.size > 2*minRewriteSize {
		t.Errorf("%d bytes for %d live ones", j.size, j.liveBytes())
	}
	check := func(label string) {
		t.Helper()
		if v, err := j.Get("k"); err != nil || len(v) != len(big)+1 || v[len(big)] != 39 {
			t.Errorf("%s: k has %d bytes, %v", label, len(v), err)
		}
		if v, err := j.Get("small0"); err != nil || string(v) != "\x27" {
			t.Errorf("%s: small0 is %q, %v", label, v, err)
		}
	}
	check("at once")
	live := j.liveBytes()
	j.Close()
	if err := os.WriteFile(path+".new", []byte("left by a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, path)
	check("after a restart")
	if j.liveBytes() != live {
		t.Errorf("live size %d after a restart, %d before", j.liveBytes(), live)
	}
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("the unfinished file is still there")
	}
}

func TestManyCommittersShareSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 100 {
				if err := j.Commit(Entry{Key: fmt.Sprintf("%d/%d", g, i), Value: []byte("x")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	j.Close()
	n := 0
	open(t, path).Each(func(string, []byte) (uint32, error) { n++; return 0, nil })
	if n != 1600 {
		t.Errorf("%d values, want 1600", n)
	}
}

// TestSyncFails checks that Commit returns an error if fsync fails, and that
// the refused entries are gone after a restart. Until the restart, the journal
// must refuse all commits.
func TestSyncFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	mustCommit(t, j, Entry{Key: "before", Value: []byte("1")})
	calls := 0
	j.sync = func(int) error {
		if calls++; calls == 1 {
			return unix.EIO
		}
		return nil
	}
	for _, key := range []string{"refused", "after"} {
		if err := j.Commit(Entry{Key: key, Value: []byte("2")}); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %v", key, err)
		}
	}
	j.Close()
	j = open(t, path)
	for key, want := range map[string]bool{"before": true, "refused": false, "after": false} {
		if v, err := j.Get(key); (err == nil && v != nil) != want {
			t.Errorf("%s: %q, %v", key, v, err)
		}
	}
	mustCommit(t, j, Entry{Key: "after", Value: []byte("3")})
}

// TestUndoFails checks which error Commit returns if a failed change could not be
// removed from the file, and that the change may then exist after a restart.
func TestUndoFails(t *testing.T) {
	for _, tt := range []struct {
		name               string
		syncs              []error // results of the calls of sync
		truncate           error
		uncertain, remains bool
	}{
		{"fsync fails", []error{unix.EIO, nil}, nil, false, false},
		{"fsync fails twice", []error{unix.EIO, unix.EIO}, nil, true, false},
		{"fsync and truncate fail", []error{unix.EIO}, unix.EROFS, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			j := open(t, path)
			calls := 0
			j.sync = func(int) error { calls++; return tt.syncs[calls-1] }
			j.truncate = func(f *os.File, size int64) error {
				if tt.truncate != nil {
					return tt.truncate
				}
				return f.Truncate(size)
			}
			err := j.Commit(Entry{Key: "refused", Value: []byte("2")})
			if !errors.Is(err, unix.EIO) || errors.Is(err, ErrUncertain) != tt.uncertain {
				t.Errorf("error %v", err)
			}
			if err := j.Commit(Entry{Key: "after", Value: []byte("2")}); err == nil || errors.Is(err, ErrUncertain) {
				t.Errorf("the next commit, which writes nothing: %v", err)
			}
			if calls != len(tt.syncs) {
				t.Errorf("%d calls of sync", calls)
			}
			j.Close()
			if v, err := open(t, path).Get("refused"); err != nil || (v != nil) != tt.remains {
				t.Errorf("after a restart: %q, %v", v, err)
			}
		})
	}
}

// TestFullDisk checks that a commit fails on a full disk and that the earlier
// values are kept. Later commits must succeed when there is space again.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("mount tmpfs:", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 150<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, filepath.Join(dir, "journal"))
	mustCommit(t, j, Entry{Key: "a", Value: []byte("1")})
	if err := j.Commit(Entry{Key: "a", Value: make([]byte, 200<<10)}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v, want ENOSPC", err)
	}
	if errors.Is(j.failure, unix.ENOSPC) || j.CheckSpace(100<<10, 0) == nil {
		t.Errorf("failure %v, and there is space", j.failure)
	}
	os.Remove(ballast)
	if err := j.CheckSpace(1<<10, 0); err != nil {
		t.Error(err)
	}
	mustCommit(t, j, Entry{Key: "b", Value: []byte("2")})
	j.Close()
	if diff := cmp.Diff("a=1\nb=2\n", contents(t, open(t, j.path))); diff != "" {
		t.Error(diff)
	}
}

// TestBrokenDisk checks that nothing is acknowledged after a write that failed
// and could not be undone.
func TestBrokenDisk(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	mustCommit(t, j, Entry{Key: "a", Value: []byte("1")})
	j.file.Close()
	for range 2 {
		if err := j.Commit(Entry{Key: "a", Value: []byte("2")}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
	<-j.Broken()
}

// FuzzOpen checks that Open does not panic. If Open accepts a file, a second
// Open must find the same contents.
func FuzzOpen(f *testing.F) {
	s := salt(0x0102030405060708)
	file := appendHeader(nil, headerSize, s)
	f.Add(file)
	file = s.appendFrame(file, headerSize, []Entry{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}}, nil)
	f.Add(file)
	file = s.appendFrame(file, int64(len(file)), []Entry{{Key: "a", Value: nil}, {Key: "c", Value: []byte{}}}, nil)
	f.Add(file)
	f.Add(file[:len(file)-3])
	f.Add(append(file, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path)
		if err != nil {
			return
		}
		first := contents(t, j)
		j.Close()
		if diff := cmp.Diff(first, contents(t, open(t, path))); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzEntries decodes entries without checking the checksum of a frame, because
// random bytes would never match it.
func FuzzEntries(f *testing.F) {
	frame := salt(0).appendFrame(nil, 0, []Entry{{Key: "a", Value: []byte("1")}, {Key: "b", Value: nil}}, nil)
	f.Add(frame[frameHeader:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := scan{index: make(map[string]location), end: headerSize}
		if !s.apply(payload) {
			return
		}
		for key, p := range s.index {
			from := p.offset - headerSize - frameHeader
			if from < 0 || from+int64(p.length) > int64(len(payload)) {
				t.Errorf("%q lies at %d, %d bytes, of %d", key, from, p.length, len(payload))
			}
		}
	})
}

func BenchmarkCommit16(b *testing.B) {
	j, err := Open(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	value := make([]byte, 2000)
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.Commit(Entry{Key: "k", Value: value}); err != nil {
				b.Error(err)
			}
		}
	})
}
