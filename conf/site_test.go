package conf

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSite parses values that Slurm accepts and our daemons refuse. In a file
// that Slurm's daemons read, such a value must cause a warning. In a file for
// our daemons, it must be an error.
func TestSite(t *testing.T) {
	const key = "AuthAltTypes=auth/jwt\nAuthAltParameters="
	tests := []struct {
		name, line string
		warning    string // warning about the last line, if the file is a site's
		check      func(*Cluster) bool
	}{
		{"a relative path of a key", key + "jwt_key=jwt.key", "AuthAltParameters: jwt_key: not an absolute path",
			func(c *Cluster) bool { return c.JWT && c.JWTKey == "" }},
		{"a relative path of a key set", key + "jwks=jwks.json", "AuthAltParameters: jwks: not an absolute path", func(c *Cluster) bool { return c.JWKS == "" && c.JWTKey == "" }},
		{"a key twice", key + "jwt_key=/a,jwt_key=/b", "AuthAltParameters: jwt_key: repeated; the first one is used", func(c *Cluster) bool { return c.JWTKey == "/a" }},
		{"a value for a parameter without one", key + "disable_token_creation=yes", "AuthAltParameters: disable_token_creation: enabled; its value is ignored", func(c *Cluster) bool { return c.DisableTokenCreation }},
		{"a claim for a time as the user", key + "userclaimfield=exp", "AuthAltParameters: userclaimfield: not the name of a user claim", func(c *Cluster) bool { return c.UserClaimField == "" }},
		{"an invalid lifetime", key + "max_token_lifespan=long", "AuthAltParameters: max_token_lifespan: not a number", func(c *Cluster) bool { return c.MaxTokenLifespan == 0 }},
		{"several", key + "jwt_key=k,new,jwks=/j", `AuthAltParameters: jwt_key: not an absolute path, so each program would read another file; ` +
			`ignored, and the daemons verify tokens; unknown parameter "new", ignored`, func(c *Cluster) bool { return c.JWKS == "/j" }},
		{"an unsupported alternative", "AuthAltTypes=auth/jwt,auth/kerberos", `AuthAltTypes: "auth/kerberos" is not supported`, func(c *Cluster) bool { return c.JWT }},
		{"no authentication", "AuthType=auth/none", `AuthType: "auth/none" is not supported here: only tokens are accepted (AuthAltTypes=auth/jwt)`, func(c *Cluster) bool { return c.AuthType == "auth/none" && c.Munge.Socket == "" }},
		{"a misspelled authentication", "AuthType=auth/mung", `AuthType: "auth/mung" is not supported here: only tokens are accepted (AuthAltTypes=auth/jwt); did you mean auth/munge?`, func(c *Cluster) bool { return c.AuthType == "auth/mung" }},
		{"accounting in a file", "AccountingStorageType=accounting_storage/filetxt", "AccountingStorageType: unsupported type", func(c *Cluster) bool { return c.Accounting == nil }},
		{"a timeout of 0", "MessageTimeout=0", "MessageTimeout: 0 is not a timeout", func(c *Cluster) bool { return c.MessageTimeout == defaultMessageTimeout }},
		{"a timeout of 0 for connections", "TCPTimeout=0", "TCPTimeout: 0 is not a timeout", func(c *Cluster) bool { return c.ConnectTimeout == 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\n" + tt.line}.open)
			if err != nil || !tt.check(c) {
				t.Fatalf("%v, %+v", err, c)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0].String(), ": "+tt.warning) || strings.Contains(warnings[0].String(), "did you mean") != strings.Contains(tt.warning, "did you mean") {
				t.Errorf("warned %q", texts(warnings))
			}
			if _, _, err := readCluster("/c", files{"/c": minimal + tt.line}.open); err == nil {
				t.Error("accepted in a file for our daemons")
			}
			if strings.HasPrefix(tt.line, "AuthType=") {
				return
			}
			if _, _, err := readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\nAuthType=auth/cred\n" + tt.line}.open); err == nil {
				t.Error("accepted in a file for our daemons that has keys in Slurm's spelling")
			}
		})
	}
}

// TestClientIDs checks that the settings for identity claims are read from a
// file of a site's Slurm, and cause no warning.
func TestClientIDs(t *testing.T) {
	for value, want := range map[string][2]bool{
		"jwks=/j":                                    {false, false},
		"jwks=/j,use_jwt_client_ids":                 {true, false},
		"jwks=/j,use_jwt_client_ids_only":            {true, true},
		"use_jwt_client_ids_only,use_jwt_client_ids": {true, true},
		"use_jwt_client_ids,use_jwt_client_ids_only": {true, true},
	} {
		c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\nAuthAltTypes=auth/jwt\nAuthAltParameters=" + value}.open)
		if err != nil || len(warnings) != 0 || [2]bool{c.ClientIDs, c.ClientIDsOnly} != want {
			t.Errorf("%s: %v, warned %q, %+v", value, err, texts(warnings), c)
		}
	}
}

// TestManyUnknownKeys checks that a file full of unknown keys, which a controller
// may have sent, causes a limited number of warnings: those about the first.
func TestManyUnknownKeys(t *testing.T) {
	text := "ClusterName=c\nSlurmctldHost=h\n"
	for i := range 1000 {
		text += fmt.Sprintf("Unknown%d=1\n", i)
	}
	_, warnings, err := readCluster("/c", files{"/c": text}.open)
	if err != nil || len(warnings) != 101 {
		t.Fatalf("%d warnings, %v", len(warnings), err)
	}
	for i, want := range map[int]string{0: "/c:3: Unknown0: unknown key, ignored", 99: "/c:102: Unknown99: unknown key, ignored",
		100: "/c:103: Unknown100: unknown key, ignored, like 899 more"} {
		if got := warnings[i].String(); got != want {
			t.Errorf("warning %d: %s, want %s", i, got, want)
		}
	}
}

// TestTimeouts checks that timeouts are parsed as in Slurm, and that timeouts
// above the maximum are reduced to it.
func TestTimeouts(t *testing.T) {
	const reducedWarning = "MessageTimeout: reduced to the maximum, 3600"
	tests := []struct {
		value   string
		want    time.Duration
		warning string
		bad     bool
	}{
		{value: "100", want: 100 * time.Second},
		{value: "3600", want: time.Hour},
		{value: "0x1e", want: 30 * time.Second},
		{value: "INFINITE", want: time.Hour, warning: reducedWarning},
		{value: "unlimited", want: time.Hour, warning: reducedWarning},
		{value: "65535", want: time.Hour, warning: reducedWarning},
		{value: "99999999999999999999", want: time.Hour, warning: reducedWarning},
		{value: "-1", bad: true},
		{value: "10s", bad: true},
		{value: "1_0", bad: true},
	}
	for _, tt := range tests {
		c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\nMessageTimeout=" + tt.value}.open)
		if (err != nil) != tt.bad || err == nil && c.MessageTimeout != tt.want {
			t.Errorf("%s: %+v, %v", tt.value, c, err)
		}
		if got := strings.TrimPrefix(strings.Join(texts(warnings), "\n"), "/c:3: "); got != tt.warning {
			t.Errorf("%s: warned %q, want %q", tt.value, got, tt.warning)
		}
	}
	c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\nTCPTimeout=INFINITE"}.open)
	if err != nil || c.ConnectTimeout != 2*time.Minute || len(warnings) != 1 {
		t.Errorf("TCPTimeout: %+v, %q, %v", c, texts(warnings), err)
	}
}

// TestOddFiles reads files with the oddities that editors, scripts and other
// systems produce.
func TestOddFiles(t *testing.T) {
	const slurm = "ClusterName=c\nSlurmctldHost=h\n"
	tests := []struct{ name, text, warning string }{
		{"a node's line with many continuations", slurm + "NodeName=" + strings.Repeat("node000[1-9],", 20000) + "n \\\n" + strings.Repeat("Weight=1 \\\n", 2000) + "CPUs=4", ""},
		{"many nodes", slurm + strings.Repeat("NodeName=n[1-64] CPUs=4\n", 20000), ""},
		{"other line ends and white space", strings.ReplaceAll(slurm, "\n", " \t\r\n\r\n\v\f\r\n"), ""},
		{"a byte order mark", "\ufeff" + slurm, ""},
		{"no line end at the end of the file", strings.TrimSuffix(slurm, "\n"), ""},
		{"a continued line at the end", slurm + "Licenses=a \\", "/c:3: the file ends within a continued line; it may be incomplete"},
		{"a continued line and a line end", slurm + "Licenses=a \\\n", "/c:3: the file ends within a continued line; it may be incomplete"},
		{"repeated keys that are ignored", slurm + "Prolog=/a\nProlog=/b\nTaskPlugin=task/cgroup\nTaskPlugin=task/affinity", ""},
		{"keys that are new in 26.05", slurm + "PowerAction=off Location=slurmctld Program=/p Args=a,b c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, err := readCluster("/c", files{"/c": tt.text}.open)
			if err != nil || c.ClusterName != "c" || c.Controllers[0].Name != "h" {
				t.Fatal(c, err)
			}
			if got := strings.Join(texts(warnings), "\n"); got != tt.warning {
				t.Errorf("warned %q, want %q", got, tt.warning)
			}
		})
	}
}

// TestFindOrder checks that Find returns the path of the file that was fetched
// from the controller only if no other file exists.
func TestFindOrder(t *testing.T) {
	t.Setenv("SCHED_CONF", "")
	t.Setenv("SLURM_CONF", "")
	dir := t.TempDir()
	saved := DefaultPaths
	defer func() { DefaultPaths = saved }()
	DefaultPaths = []string{dir + "/etc.conf", dir + "/run.conf"}
	if _, err := Find(""); err == nil {
		t.Error("found a file although none exists")
	}
	for _, name := range []string{"/run.conf", "/etc.conf"} {
		if err := os.WriteFile(dir+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Find(""); got != dir+name || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, name)
		}
	}
	t.Setenv("SLURM_CONF", "/named")
	if got, err := Find(""); got != "/named" || err != nil {
		t.Errorf("beside the environment %s, %v", got, err)
	}
}
