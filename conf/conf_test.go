package conf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// A files value maps the paths of files to their contents. All of these files
// belong to root.
type files map[string]string

func (f files) open(path string) ([]byte, uint32, error) {
	text, ok := f[path]
	if !ok {
		return nil, 0, errs.New(errs.NotFound, "configuration %s: no such file or directory", path)
	}
	return []byte(text), 0, nil
}

const minimal = "ClusterName=c\nSchedctldHost=h\n"

// The variable munged is the Auth that results if a file has keys in Slurm's
// spelling but does not configure authentication.
var munged = Auth{AuthType: "auth/munge", Munge: Munge{Socket: "/run/munge/munge.socket.2"}}

func TestReadCluster(t *testing.T) {
	base := func(change func(*Cluster)) *Cluster {
		c := &Cluster{Path: "/c", Files: []string{"/c"}, ClusterName: "c", Controllers: []Host{{"h", "h"}}, ControllerPort: 6817,
			MessageTimeout: 10 * time.Second, Auth: Auth{AuthType: "auth/cred", AuthSocket: "/run/schedctld/socket"}}
		if change != nil {
			change(c)
		}
		return c
	}
	tests := []struct {
		name     string
		text     string
		want     *Cluster
		warnings []string
	}{
		{name: "minimal", text: minimal, want: base(nil)},
		{name: "keys in any case, blanks around the sign, two on a line", text: "clustername = C\tSCHEDCTLDHOST=h", want: base(nil)},
		{name: "carriage returns", text: strings.ReplaceAll(minimal, "\n", "\r\n"), want: base(nil)},
		{name: "controllers in order", text: "ClusterName=c\nSchedctldHost=a(10.0.0.1)\nSchedctldHost=b\nSchedctldHost=d([::1])",
			want: base(func(c *Cluster) { c.Controllers = []Host{{"a", "10.0.0.1"}, {"b", "b"}, {"d", "::1"}} })},
		{name: "both spellings, the same", text: minimal + "SlurmctldHost=h\nSchedctldPort=7\nSlurmctldPort=7",
			want: base(func(c *Cluster) { c.SlurmKeys, c.ControllerPort, c.Auth = true, 7, munged })},
		{name: "comments", text: "# all of it\nClusterName=c # the rest\n \t# \\\nSchedctldHost=h#x",
			want: base(nil)},
		{name: "an escaped #, and a # in quotes", text: minimal + `NodeName=n Comment="a # b" Extra=x\#y`,
			want: base(func(c *Cluster) {
				c.Nodes = []Line{{"/c", 3, []Pair{{"NodeName", "n"}, {"Comment", "a # b"}, {"Extra", "x#y"}}}}
			})},
		{name: "continued lines", text: minimal + "AuthAltTypes=\\\nauth/jwt AuthAltParameters=jwt_key=/k,\\ \njwks=/j",
			want: base(func(c *Cluster) { c.JWT, c.JWTKey, c.JWKS = true, "/k", "/j" })},
		{name: "two backslashes continue nothing", text: minimal + "NodeName=n Extra=a\\\\\nSchedUser=s",
			want: base(func(c *Cluster) {
				c.User, c.Nodes = "s", []Line{{"/c", 3, []Pair{{"NodeName", "n"}, {"Extra", `a\`}}}}
			})},
		{name: "everything", text: minimal + `
			SchedUser=sched
			SchedctldPort=6820-6830
			AuthType=auth/munge
			AuthInfo=cred_expire=60,socket=/run/munge.socket
			AuthAltTypes=auth/jwt
			AuthAltParameters=jwks=/j,jwt_key=/k,userclaimfield=preferred_username,disable_token_creation,max_token_lifespan=60
			AccountingStoragePort=7
			AccountingStorageHost=db
			AccountingStorageBackupHost=db2 AccountingStorageSocket=/run/db
			AccountingStorageType=accounting_storage/scheddbd AccountingStoragePass=/run/munge2
			StateSaveLocation=/var/spool/sched/
			NodeName=n1 CPUs=4
			PartitionName=p Nodes=n1
			TLSType=tls/none
			TLSParameters=ca_cert_file=/ca,restd_cert_file=/cert
			MessageTimeout=30 TCPTimeout=5 KillWait=60
			DebugFlags=Protocol,,Agent`,
			want: base(func(c *Cluster) {
				c.User, c.ControllerPort, c.MorePorts, c.StateSaveLocation = "sched", 6820, 10, "/var/spool/sched"
				c.Auth = Auth{AuthType: "auth/munge", Munge: Munge{Socket: "/run/munge.socket"}, JWT: true, JWTKey: "/k", JWKS: "/j",
					UserClaimField: "preferred_username", DisableTokenCreation: true, MaxTokenLifespan: time.Minute}
				c.Accounting = &Accounting{"db", "db2", 7, "/run/db", "/run/munge2"}
				c.Nodes = []Line{{"/c", 15, []Pair{{"NodeName", "n1"}, {"CPUs", "4"}}}}
				c.Partitions = []Line{{"/c", 16, []Pair{{"PartitionName", "p"}, {"Nodes", "n1"}}}}
				c.TLS = map[string]string{"ca_cert_file": "/ca", "restd_cert_file": "/cert"}
				c.MessageTimeout, c.ConnectTimeout, c.KillWait = 30*time.Second, 5*time.Second, time.Minute
				c.DebugFlags = []string{"Protocol", "Agent"}
			})},
		{name: "a site's file", text: `
			ClusterName=C
			SlurmctldHost=h
			SlurmUser=slurm
			AccountingStorageType=accounting_storage/slurmdbd
			AuthAltTypes=auth/jwt
			StateSaveLocation=/state
			SelectType=select/cons_tres
			SlurmctldTimeout=300 EpilogSlurmctld=/x
			NodeSet=ns Feature=x
			DownNodes=n9 State=DOWN`,
			want: base(func(c *Cluster) {
				c.SlurmKeys, c.User, c.StateSaveLocation, c.Accounting = true, "slurm", "/state", &Accounting{Host: "localhost", Port: 6819}
				c.Auth = Auth{AuthType: "auth/munge", Munge: munged.Munge, JWT: true, JWTKey: "/state/jwt_hs256.key"}
			})},
		{name: "no accounting daemon", text: minimal + "AccountingStorageType=accounting_storage/none AccountingStorageHost=db", want: base(nil)},
		{name: "root is the default user", text: minimal + "SchedUser=root", want: base(nil)},
		{name: "unknown keys", text: minimal + "SchedctlHost=x\nFoo=secret\nAuthAltParameters=disable_creation,jwt_key=/k", want: base(func(c *Cluster) { c.JWTKey = "/k" }),
			warnings: []string{"/c:3: SchedctlHost: unknown key, ignored; did you mean SchedctldHost?", "/c:4: Foo: unknown key, ignored",
				`/c:5: AuthAltParameters: unknown parameter "disable_creation", ignored`}},
		{name: "misspelt keys", text: minimal + "AuthAltType=auth/jwt\nslurmctlport=7000\nMesageTimeout=5\nSelectTyp=x\nStateSaveLocaton=/s", want: base(func(c *Cluster) { c.SlurmKeys, c.Auth = true, munged }),
			warnings: []string{"/c:3: AuthAltType: unknown key, ignored; did you mean AuthAltTypes?", "/c:4: slurmctlport: unknown key, ignored; did you mean SlurmctldPort?",
				"/c:5: MesageTimeout: unknown key, ignored; did you mean MessageTimeout?", "/c:6: SelectTyp: unknown key, ignored; did you mean SelectType?",
				"/c:7: StateSaveLocaton: unknown key, ignored; did you mean StateSaveLocation?"}},
		{name: "repeated", text: minimal + "SchedctldPort=1\nSchedctldPort=2", want: base(func(c *Cluster) { c.ControllerPort = 2 }),
			warnings: []string{"/c:4: SchedctldPort: repeated; the last one is used"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, warnings, err := readCluster("/c", files{"/c": test.text}.open)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if d := cmp.Diff(test.warnings, texts(warnings), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("warnings: -want +got\n%s", d)
			}
		})
	}
}

// TestProblems checks that all problems of a file are reported, each with its
// line.
func TestProblems(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"only a comment", "# SchedctldHost=h\n\n", []string{"/c: the file is empty", "/c: ClusterName is missing", "/c: SchedctldHost is missing"}},
		{"empty", "", []string{"/c: the file is empty", "/c: ClusterName is missing", "/c: SchedctldHost is missing"}},
		{"many problems", "ClusterName=a/b\n\nSchedctldHost=h(\nSchedctldPort=0\nMessageTimeout=-1\nSchedUser=-u\nStateSaveLocation=here\n",
			[]string{"/c:1: ClusterName: want a name of letters, digits, '.', '_' and '-'", "/c:3: SchedctldHost: want name or name(address)",
				"/c:4: SchedctldPort: want a port from 1 to 65535", "/c:5: MessageTimeout: want a number of seconds above 0",
				"/c:6: SchedUser: want a user name or uid", "/c:7: StateSaveLocation: want an absolute path"}},
		{"spellings that differ", minimal + "SchedUser=a\nSlurmUser=b", []string{"/c:4: SlurmUser and SchedUser are both given and differ"}},
		{"too many controllers", "ClusterName=c\n" + strings.Repeat("SlurmctldHost=h\n", 33), []string{"/c:34: SlurmctldHost: more than 32 controllers"}},
		{"spellings that differ in a list", minimal + "SlurmctldHost=h\nSlurmctldHost=i", []string{"/c:3: SlurmctldHost and SchedctldHost are both given and differ"}},
		{"plugins", minimal + "AuthType=auth/none\nAuthAltTypes=auth/jwt,auth/x\nAccountingStorageType=accounting_storage/mysql",
			[]string{"/c:3: AuthType: want auth/cred, auth/munge or auth/slurm", "/c:4: AuthAltTypes: want auth/jwt",
				"/c:5: AccountingStorageType: want accounting_storage/scheddbd, accounting_storage/slurmdbd or accounting_storage/none"}},
		{"parameters", minimal + "AuthInfo=socket=x\nAuthAltParameters=jwt_key=k\nTLSParameters==", []string{"/c:3: AuthInfo: want an absolute path",
			"/c:4: AuthAltParameters: jwt_key: want an absolute path", "/c:5: TLSParameters: want name=value pairs, separated by commas"}},
		{"a claim for a time as the user", minimal + "AuthAltParameters=userclaimfield=exp", []string{"/c:3: AuthAltParameters: userclaimfield: want the name of a claim"}},
		{"syntax", minimal + "word\nSchedUser=\nSchedUser=\"s\nSchedUser=\"s\"t\n=x\nStoragePass=a secret", []string{
			"/c:3: column 1: want Key=Value", "/c:4: SchedUser: no value", "/c:6: SchedUser: an unclosed quote, or text after the closing quote", "/c:7: column 1: want Key=Value", "/c:8: column 15: want Key=Value"}},
		{"a control character", minimal + "SchedUser=a\x01b", []string{"/c:3: a control character"}},
		{"a NUL byte", minimal + "SchedUser=a\x00b\nSchedUser=\x00\n", []string{"/c:3: a NUL byte: this is not a text file"}},
		{"UTF-16", utf16Text("\ufeff"+minimal, binary.LittleEndian), []string{"configuration /c: it looks like UTF-16, but must be UTF-8 or ASCII"}},
		{"UTF-16, big endian", utf16Text("\ufeff"+minimal, binary.BigEndian), []string{"configuration /c: it looks like UTF-16, but must be UTF-8 or ASCII"}},
		{"UTF-16 without a mark", utf16Text(minimal, binary.LittleEndian), []string{"configuration /c: it looks like UTF-16, but must be UTF-8 or ASCII"}},
		{"line too long", minimal + "Foo=" + strings.Repeat("x", maxLine), []string{"/c:3: line longer than 1048576 bytes"}},
		{"include", minimal + "Include x\nInclude = x\nInclude\nInclude *.conf", []string{
			"/c:3: configuration /x: no such file or directory", "/c:5: Include takes one file name", "/c:6: Include takes one file name, not a pattern"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _, err := readCluster("/c", files{"/c": test.text}.open)
			if c != nil || errs.KindOf(err) != errs.Invalid {
				t.Fatalf("got %v, %v, want a refusal", c, err)
			}
			if d := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// utf16Text returns text in UTF-16.
func utf16Text(text string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func TestProblemsAreBounded(t *testing.T) {
	_, _, err := readCluster("/c", files{"/c": strings.Repeat("x\n", 1000)}.open)
	if n := strings.Count(err.Error(), "\n"); n != maxProblems {
		t.Errorf("%d lines, want %d and a last one", n, maxProblems)
	}
	if !strings.HasSuffix(err.Error(), "and 902 more") {
		t.Errorf("ends in %q", err.Error()[len(err.Error())-30:])
	}
}

func TestInclude(t *testing.T) {
	f := files{
		"/etc/c":     "Include nodes\ninclude\t\"/site/ports\"\nClusterName=c\nSchedctldHost=h",
		"/etc/nodes": "NodeName=a\nInclude more",
		"/etc/more":  "NodeName=b",
		"/site/ports": "SchedctldPort=99\n" +
			"Unknown=1",
	}
	c, warnings, err := readCluster("/etc/c", f.open)
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{"/etc/nodes", 1, []Pair{{"NodeName", "a"}}}, {"/etc/more", 1, []Pair{{"NodeName", "b"}}}}
	if d := cmp.Diff(want, c.Nodes); d != "" || c.ControllerPort != 99 {
		t.Errorf("port %d; nodes -want +got\n%s", c.ControllerPort, d)
	}
	if d := cmp.Diff([]string{"/site/ports:2: Unknown: unknown key, ignored"}, texts(warnings)); d != "" {
		t.Errorf("warnings: -want +got\n%s", d)
	}
	f["/etc/more"] = "Include c"
	if _, _, err := readCluster("/etc/c", f.open); err == nil || !strings.Contains(err.Error(), "/etc/c includes itself: /etc/c, /etc/nodes, /etc/more, /etc/c") {
		t.Errorf("files that include each other: got %v", err)
	}
}

// TestIncludeSlurmConf reads a sched.conf that includes a whole slurm.conf.
// Includes in that slurm.conf must be resolved as in Slurm.
func TestIncludeSlurmConf(t *testing.T) {
	f := files{
		"/etc/sched/sched.conf": "Include /etc/slurm/slurm.conf\nInclude ours.conf\nTLSParameters=restd_cert_file=/c",
		"/etc/slurm/slurm.conf": "ClusterName=c\nSlurmctldHost=h\nTLSParameters=ca_cert_file=/ca\nInclude nodes.conf\nInclude /site/more.conf",
		"/etc/slurm/nodes.conf": "NodeName=a",
		"/etc/slurm/racks.conf": "NodeName=b",
		"/etc/sched/ours.conf":  "SchedctldPort=99",
		"/site/more.conf":       "Include racks.conf",
		"/etc/sched/nodes.conf": "NodeName=wrong",
		"/etc/sched/racks.conf": "NodeName=wrong",
	}
	c, _, err := readCluster("/etc/sched/sched.conf", f.open)
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{"/etc/slurm/nodes.conf", 1, []Pair{{"NodeName", "a"}}}, {"/etc/slurm/racks.conf", 1, []Pair{{"NodeName", "b"}}}}
	if d := cmp.Diff(want, c.Nodes); d != "" || c.ControllerPort != 99 || !c.SlurmKeys || c.TLS["restd_cert_file"] != "/c" {
		t.Errorf("port %d, TLS %v; nodes -want +got\n%s", c.ControllerPort, c.TLS, d)
	}
}

// TestShadowed reads a new sched.conf that has only a few lines and hides
// slurm.conf. The error must have a hint that names slurm.conf and proposes an
// Include line that works.
func TestShadowed(t *testing.T) {
	saved := DefaultPaths
	defer func() { DefaultPaths = saved }()
	dir := t.TempDir()
	DefaultPaths = []string{dir + "/sched.conf", dir + "/slurm.conf", dir + "/run.conf"}
	const tls = "TLSParameters=restd_cert_file=/c"
	readHint := func() string {
		_, _, err := Read(dir + "/sched.conf")
		if err == nil || !strings.Contains(err.Error(), "ClusterName is missing") {
			t.Errorf("got %v", err)
		}
		return errs.HintOf(err)
	}
	write(t, dir+"/sched.conf", tls)
	if hint := readHint(); hint != "" {
		t.Errorf("nothing is hidden, but got: %s", hint)
	}
	write(t, dir+"/slurm.conf", "ClusterName=c\nSlurmctldHost=h\n")
	hint := readHint()
	_, line, found := strings.Cut(hint, ": Include ")
	if !found || !strings.HasPrefix(hint, dir+"/slurm.conf is not read, because "+dir+"/sched.conf exists") {
		t.Fatalf("hint %q", hint)
	}
	write(t, dir+"/sched.conf", "Include "+line+"\n"+tls)
	if c, _, err := Read(dir + "/sched.conf"); err != nil || c.ClusterName != "c" || c.TLS["restd_cert_file"] != "/c" {
		t.Errorf("after the hint: %+v, %v", c, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadDbd(t *testing.T) {
	got, warnings, err := readDbd("/d", files{"/d": "DbdHost=db\nSlurmUser=s\nDbdPort=7\nStorageLoc=/x.db\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/k\nPidFile=/p\nClusterName=c"}.open)
	if err != nil {
		t.Fatal(err)
	}
	want := &Dbd{Path: "/d", Files: []string{"/d"}, SlurmKeys: true, Host: "db", Address: "db", Port: 7, User: "s", StorageLoc: "/x.db",
		Auth: Auth{AuthType: "auth/munge", Munge: munged.Munge, JWT: true, JWTKey: "/k"}, MessageTimeout: 10 * time.Second}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]string{"/d:8: ClusterName: unknown key, ignored"}, texts(warnings)); d != "" {
		t.Errorf("warnings: -want +got\n%s", d)
	}
	if _, _, err := readDbd("/d", files{"/d": "DbdPort=x"}.open); err == nil || err.Error() != "/d: StorageLoc is missing\n/d:1: DbdPort: want a port from 1 to 65535" {
		t.Errorf("got %v", err)
	}
}

// TestOtherFile checks the hint for an administrator who names the configuration
// of another daemon.
func TestOtherFile(t *testing.T) {
	dir := t.TempDir()
	cluster, dbd := filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "slurmdbd.conf")
	write(t, cluster, "ClusterName=c\nSlurmctldHost=h\n")
	write(t, dbd, "DbdHost=h\nStorageType=accounting_storage/mysql\n")
	_, _, clusterErr := Read(dbd)
	_, _, dbdErr := ReadDbd(cluster)
	for err, want := range map[error]string{clusterErr: "of an accounting daemon: name that of the cluster", dbdErr: "of a cluster: name that of scheddbd"} {
		if hint := errs.HintOf(err); err == nil || !strings.Contains(err.Error(), "is missing") || !strings.Contains(hint, want) {
			t.Errorf("%v, hint %q, want %q", err, hint, want)
		}
	}
}

// TestEmpty checks that /dev/null is read without an error, and that every
// setting then has its default value.
func TestEmpty(t *testing.T) {
	c, warnings, err := Read("/dev/null")
	want := &Cluster{Path: "/dev/null", ControllerPort: 6817, MessageTimeout: 10 * time.Second, Auth: Auth{AuthType: "auth/cred"}}
	if d := cmp.Diff(want, c); d != "" || err != nil || len(warnings) > 0 {
		t.Errorf("%q, %v, -want +got\n%s", warnings, err, d)
	}
}

func TestReadFromDisk(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/c"
	if err := os.WriteFile(path, []byte(minimal), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("c", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, dir + "/link"} {
		c, warnings, err := Read(name)
		if err != nil || len(warnings) > 0 || !slices.Equal(c.Files, []string{name}) {
			t.Errorf("%s: %v, %q, %v", name, c, warnings, err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path); err == nil || !strings.Contains(err.Error(), "lets other users write it") || errs.HintOf(err) == "" {
		t.Errorf("writable by others: got %v", err)
	}
	if _, _, err := Read(dir + "/none"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("absent: got %v", err)
	}
}

// TestJudge checks which files a root process accepts. A file is refused if a
// user other than root and SchedUser owns it or can change it.
func TestJudge(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const schedUser, alice = 30001, 30002
	dir := t.TempDir()
	path, other := dir+"/main.conf", dir+"/more.conf"
	for _, f := range []string{path, other} {
		if err := os.WriteFile(f, []byte(minimal), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chown := func(path string, uid, gid int, mode os.FileMode) {
		if err := errors.Join(os.Chown(path, uid, gid), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name     string
		uid, gid int
		mode     os.FileMode
		dirUID   int
		want     string // part of the error; "" for none
	}{
		{"root's", 0, 0, 0o644, 0, ""},
		{"SchedUser's", schedUser, schedUser, 0o644, 0, ""},
		{"alice's", alice, alice, 0o644, 0, "belongs to uid 30002"},
		{"writable by a group", 0, alice, 0o664, 0, "is writable by group 30002"},
		{"in alice's directory", 0, 0, 0o644, alice, "belongs to uid 30002"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chown(dir, tt.dirUID, 0, 0o755)
			chown(other, tt.uid, tt.gid, tt.mode)
			err := CheckTrust([]string{path, other, devNull}, guard.Trust{Owners: []uint32{schedUser}})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestStrangeOwner(t *testing.T) {
	mallory := func(string) ([]byte, uint32, error) { return []byte(minimal), 4711, nil }
	_, warnings, err := readCluster("/c", mallory)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "4711") {
		t.Errorf("%q, %v", warnings, err)
	}
}

func texts(warnings []Warning) (out []string) {
	for _, w := range warnings {
		out = append(out, w.String())
	}
	return out
}

func TestEnv(t *testing.T) {
	tests := []struct {
		name         string
		sched, slurm string
		want         string
		bad          bool
	}{
		{name: "neither"},
		{name: "ours", sched: "a", want: "a"},
		{name: "Slurm's", slurm: "b", want: "b"},
		{name: "the same", sched: "a", slurm: "a", want: "a"},
		{name: "different", sched: "token-a", slurm: "token-b", bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SCHED_JWT", test.sched)
			t.Setenv("SLURM_JWT", test.slurm)
			got, err := Env("SCHED_JWT")
			if got != test.want || (err != nil) != test.bad {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && strings.Contains(fmt.Sprint(err), "token-") {
				t.Errorf("the error shows a token: %v", err)
			}
		})
	}
	t.Setenv("SLURMRESTD_LISTEN", ":1")
	if got, _ := Env("SCHEDRESTD_LISTEN"); got != ":1" {
		t.Errorf("SCHEDRESTD_LISTEN: got %q", got)
	}
}

func TestFind(t *testing.T) {
	t.Setenv("SCHED_CONF", "")
	t.Setenv("SLURM_CONF", "")
	DefaultPaths = []string{t.TempDir() + "/none"}
	if _, err := Find(""); errs.KindOf(err) != errs.NotFound {
		t.Errorf("nothing: got %v", err)
	}
	here := t.TempDir() + "/here"
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	DefaultPaths = append(DefaultPaths, here)
	if got, err := Find(""); got != here || err != nil {
		t.Errorf("default: got %q, %v", got, err)
	}
	t.Setenv("SLURM_CONF", "/env")
	if got, err := Find(""); got != "/env" || err != nil {
		t.Errorf("environment: got %q, %v", got, err)
	}
	if got, err := Find("/flag"); got != "/flag" || err != nil {
		t.Errorf("flag: got %q, %v", got, err)
	}
}
