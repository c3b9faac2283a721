package nss

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/become"
	"schedrestd/internal/errs"
)

// newSource returns a source that reads test files instead of those in /etc,
// and runs a shell script instead of getent.
func newSource(t *testing.T, script string) *source {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // getent runs as a different user, who must be able to enter the directory
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("passwd", "root:x:0:0:root:/root:/bin/sh\nbroken:line\nalice:x:1000:1000:A:/home/alice:/bin/bash\nminus:x:4294967295:1:::\n", 0o644)
	write("group", "root:x:0:\nalice:x:1000:\nwheel:x:10:root,alice\nhpc:x:500:alice\n", 0o644)
	write("hosts", "127.0.0.1 localhost # loop\n::1 localhost ip6\n", 0o644)
	n := &source{etc: dir, timeout: 10 * time.Second, cacheTTL: time.Minute, now: time.Now}
	if script != "" {
		write("getent", "#!/bin/sh\n"+script, 0o755)
		n.tools = []string{filepath.Join(dir, "getent")}
	}
	return n
}

const getentScript = `case "$1 $2" in
"passwd carol"|"passwd 3000") echo "carol:*:3000:500:C:/home/carol:/bin/zsh";;
"passwd dave") echo "eve:*:3001:500:E:/home/eve:/bin/zsh";;
"group far"|"group 700") echo "far:*:700:carol,dave";;
"initgroups carol") echo "carol  700 0 500 10";;
"passwd usurper") echo "usurper:*:0:0:U:/:/bin/sh";;
"passwd twins") echo "twins:*:3002:500::/:/bin/sh"; echo "twins:*:3003:0::/:/bin/sh";;
"initgroups alice") echo "alice  700";;
"ahosts login1") echo "192.0.2.9 STREAM login1"; echo "192.0.2.9 DGRAM"; echo "2001:db8::9 STREAM";;
"passwd boom") exit 7;;
*) exit 2;;
esac
`

func TestUsers(t *testing.T) {
	n := newSource(t, getentScript)
	carol := User{"carol", 3000, 500, "/home/carol", "/bin/zsh", true}
	alice := User{"alice", 1000, 1000, "/home/alice", "/bin/bash", false}
	tests := []struct {
		name string
		uid  uint32
		want User
		kind errs.Kind // kind of the expected error; 0: no error
	}{
		{name: "alice", want: alice},
		{uid: 1000, want: alice},
		{name: "carol", want: carol},
		{uid: 3000, want: carol},
		{name: "nobodyatall", kind: errs.NotFound},
		{name: "dave", kind: errs.NotFound}, // getent answers with another user
		{name: "minus", kind: errs.NotFound},
		{name: "broken", kind: errs.NotFound},
		{name: "boom", kind: errs.Unavailable},
		{name: "usurper", kind: errs.NotFound}, // root may only be in the files
		{name: "twins", kind: errs.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			match := func(u User) bool { return u.Name == tt.name }
			key := tt.name
			if tt.name == "" {
				match = func(u User) bool { return u.UID == tt.uid }
				key = "3000"
			}
			got, err := n.user(key, match)
			if diff := cmp.Diff(tt.want, got); diff != "" || errs.KindOf(err) != tt.kind {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPreload checks that the look-ups after preload run getent only for entries
// that preload could not find out about.
func TestPreload(t *testing.T) {
	const several = `case "$*" in
"passwd carol 3000 nobodyatall twins") echo "carol:*:3000:500:C:/home/carol:/bin/zsh"
	echo "twins:*:3002:500::/:/bin/sh"; echo "twins:*:3003:0::/:/bin/sh"; exit 2;;
"passwd dave") echo "dave:*:3001:500:D:/home/dave:/bin/zsh";;
*) exit 7;;
esac
`
	carol := User{"carol", 3000, 500, "/home/carol", "/bin/zsh", true}
	for _, tt := range []struct {
		name    string
		preload []string
		want    User
		kind    errs.Kind // kind of the expected error; 0: no error
	}{
		{name: "carol", preload: []string{"carol", "alice", "3000", "nobodyatall", "twins"}, want: carol}, // alice is in the file
		{name: "3000", preload: []string{"carol", "3000", "nobodyatall", "twins"}, want: carol},
		{name: "nobodyatall", preload: []string{"carol", "3000", "nobodyatall", "twins"}, kind: errs.NotFound},
		{name: "twins", preload: []string{"carol", "3000", "nobodyatall", "twins"}, kind: errs.Unavailable},
		{name: "dave", preload: []string{"dave"}, want: User{"dave", 3001, 500, "/home/dave", "/bin/zsh", true}},
		{name: "erin", preload: []string{"erin"}, kind: errs.Unavailable}, // getent failed
		{name: "alice", preload: []string{"alice"}, want: User{"alice", 1000, 1000, "/home/alice", "/bin/bash", false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newSource(t, several)
			n.preload("passwd", tt.preload)
			n.tools = newSource(t, "exit 7").tools
			got, err := n.user(tt.name, func(u User) bool { return u.Name == tt.name || strconv.Itoa(int(u.UID)) == tt.name })
			if diff := cmp.Diff(tt.want, got); diff != "" || errs.KindOf(err) != tt.kind {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestNamesOf(t *testing.T) {
	n := newSource(t, getentScript)
	passwd := filepath.Join(n.etc, "passwd")
	if err := os.WriteFile(passwd, []byte("root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32][]string{0: {"root", "toor"}, 1000: {"alice"}, 3000: {"carol"}, 4000: nil} {
		got, err := n.namesOf(uid)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("uid %d: %v (-want +got):\n%s", uid, err, diff)
		}
	}
}

func TestGroups(t *testing.T) {
	n := newSource(t, getentScript)
	tests := []struct {
		user User
		want []uint32
	}{
		{User{Name: "alice", GID: 1000}, []uint32{1000, 10, 500, 700}},
		{User{Name: "carol", GID: 500}, []uint32{500, 10, 700}},
		{User{Name: "root", GID: 0}, []uint32{0, 10}},
		{User{UID: 4242, GID: 4242}, []uint32{4242}},
	}
	for _, tt := range tests {
		got, err := n.groups(tt.user)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.user, err, diff)
		}
	}
	if g, err := n.group("far", func(g Group) bool { return g.Name == "far" }); err != nil || g.GID != 700 {
		t.Errorf("group far: %v %v", g, err)
	}
}

// TestWithoutGetent checks that only the files are used if there is no getent.
func TestWithoutGetent(t *testing.T) {
	n := newSource(t, "")
	if u, err := n.user("alice", func(u User) bool { return u.Name == "alice" }); err != nil || u.UID != 1000 {
		t.Errorf("alice: %v %v", u, err)
	}
	if _, err := n.user("carol", func(u User) bool { return u.Name == "carol" }); errs.KindOf(err) != errs.NotFound {
		t.Errorf("carol: %v", err)
	}
	if got, err := n.groups(User{Name: "alice", GID: 1000}); err != nil || len(got) != 3 {
		t.Errorf("alice's groups: %v %v", got, err)
	}
}

// TestGetentIsConfined checks the environment and the ids with which getent
// runs.
func TestGetentIsConfined(t *testing.T) {
	t.Setenv("SCHED_JWT", "secret")
	t.Setenv("LD_LIBRARY_PATH", "/tmp/evil")
	n := newSource(t, `/usr/bin/env; /usr/bin/id -u; /usr/bin/id -G; pwd`)
	out, err := n.getent("ahosts", "x")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "SCHED_JWT") || strings.Contains(out, "LD_LIBRARY_PATH") {
		t.Errorf("environment leaked:\n%s", out)
	}
	if os.Geteuid() != 0 {
		t.Log("not root: the uid of getent is our own")
		return
	}
	lines := strings.Split(out, "\n")
	uid, groups, dir := lines[len(lines)-3], lines[len(lines)-2], lines[len(lines)-1]
	if n, err := strconv.Atoi(uid); err != nil || n < 60706 || n >= 61184 && n < 65520 || n == 65534 || groups != uid || dir != "/" {
		t.Errorf("uid %s, groups %s, directory %s; want an unused uid, only its group, and /", uid, groups, dir)
	}
}

func TestGetentHasLimits(t *testing.T) {
	n := newSource(t, `exec sleep 2`)
	n.timeout = 50 * time.Millisecond
	if _, err := n.getent("passwd", "slow"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("slow getent: %v", err)
	}
	n = newSource(t, `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`)
	if _, err := n.getent("passwd", "endless"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless getent: %v", err)
	}
}

// TestAnswersAreKept checks that results are cached for a while.
func TestAnswersAreKept(t *testing.T) {
	n := newSource(t, getentScript)
	now := time.Unix(1000, 0)
	n.now = func() time.Time { return now }
	if _, err := n.getent("group", "far"); err != nil {
		t.Fatal(err)
	}
	n.tools = nil
	if _, err := n.getent("group", "far"); err != nil {
		t.Errorf("a cached answer was requested again: %v", err)
	}
	now = now.Add(2 * n.cacheTTL)
	if _, err := n.getent("group", "far"); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("an expired answer was used: %v", err)
	}
}

func TestNamesThatNeverReachGetent(t *testing.T) {
	for _, name := range []string{"", "-s", "--help", "12", "a:b", "a b", "a\nb", "a,b", "../x", strings.Repeat("x", 256)} {
		if _, err := LookupUser(name); errs.KindOf(err) != errs.Invalid {
			t.Errorf("user %q: %v", name, err)
		}
		if _, err := LookupGroup(name); errs.KindOf(err) != errs.Invalid {
			t.Errorf("group %q: %v", name, err)
		}
	}
}

func TestNumbersNeedNoEntry(t *testing.T) {
	tests := []struct {
		in string
		ok bool
	}{{"2999999999", true}, {"4294967295", false}, {"4294967296", false}, {"99999999999999999999", false}}
	for _, tt := range tests {
		if u, known, err := ParseUser(tt.in); (err == nil) != tt.ok || known {
			t.Errorf("user %s: %v %v %v", tt.in, u, known, err)
		}
		if g, err := ParseGroup(tt.in); (err == nil) != tt.ok {
			t.Errorf("group %s: %v %v", tt.in, g, err)
		}
	}
}

func TestHosts(t *testing.T) {
	n := newSource(t, getentScript)
	tests := []struct{ name, want string }{
		{"192.0.2.1", "[192.0.2.1]"},
		{"::1", "[::1]"},
		{"LOCALHOST", "[127.0.0.1 ::1]"},
		{"login1", "[192.0.2.9 2001:db8::9]"},
	}
	for _, tt := range tests {
		got, err := n.host(tt.name)
		var want []netip.Addr
		for s := range strings.FieldsSeq(strings.Trim(tt.want, "[]")) {
			want = append(want, netip.MustParseAddr(s))
		}
		if err != nil || !cmp.Equal(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
			t.Errorf("%s: %v %v", tt.name, got, err)
		}
	}
	if _, err := n.host("nowhere"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("nowhere: %v", err)
	}
}

// TestNameServers checks look-ups without getent. Root must not ask a name server.
func TestNameServers(t *testing.T) {
	n := newSource(t, "")
	asked := false
	n.dns = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked = true
		client, server := net.Pipe() // a stream, on which each message has a length in front
		go func() {
			defer server.Close()
			query := make([]byte, 514)
			for {
				size, err := server.Read(query)
				if err != nil {
					return
				}
				server.Write(dnsAnswer(query[2:size]))
			}
		}()
		return client, nil
	}}
	got, err := n.host("daemon.invalid.") // the final dot prevents a search
	if os.Geteuid() == 0 {
		if errs.KindOf(err) != errs.NotFound || asked {
			t.Errorf("as root: %v, %v, asked: %v", got, err, asked)
		}
		return
	}
	if err != nil || fmt.Sprint(got) != "[192.0.2.7]" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := n.host("nowhere.invalid."); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a name that does not exist: %v, %v", got, err)
	}
	n.dns.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }
	if got, err := n.host("daemon.invalid."); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without an answer: %v, %v", got, err)
	}
}

// dnsAnswer answers a query (RFC 1035): daemon.invalid has one IPv4 address, and
// other names do not exist.
func dnsAnswer(query []byte) []byte {
	end := 12 + bytes.IndexByte(query[12:], 0) + 5 // of the question
	answer := append([]byte{query[0], query[1], 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	switch {
	case !bytes.HasPrefix(query[12:], []byte("\x06daemon")):
		answer[3] = 3
	case query[end-3] == 1: // type A
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 192, 0, 2, 7)
	}
	return append([]byte{0, byte(len(answer))}, answer...)
}

// FuzzEntries checks that the parsers accept no line of passwd or group that
// has an empty name or a reserved id.
func FuzzEntries(f *testing.F) {
	for _, s := range []string{"", "a:b:c", "root:x:0:0:root:/root:/bin/sh", "g:x:5:a,b", "n:x:-1:0:::", "n:x:4294967295:0:::", "a:::::::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if u, ok := parseUser(line); ok && (u.Name == "" || u.UID == become.NoID || u.GID == become.NoID) {
			t.Errorf("%q became %+v", line, u)
		}
		if g, ok := parseGroup(line); ok && (g.Name == "" || g.GID == become.NoID) {
			t.Errorf("%q became %+v", line, g)
		}
	})
}
