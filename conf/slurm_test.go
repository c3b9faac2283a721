package conf

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSlurmSyntax checks that parsePairs finds the same pairs in a line as
// Slurm's parser does.
func TestSlurmSyntax(t *testing.T) {
	tests := []struct {
		name, line string
		want       []Pair
		problem    string
	}{
		{name: "a comment", line: "A=b # c"},
		{name: "a comment without a space before it", line: "A=b#c"},
		{name: "an escaped #", line: `A=b\#c`, want: []Pair{{"A", "b#c"}}},
		{name: "an escaped backslash, then a comment", line: `A=b\\#c`, want: []Pair{{"A", `b\`}}},
		{name: "three backslashes", line: `A=b\\\#c`, want: []Pair{{"A", `b\#c`}}},
		{name: "a # in quotes", line: `A="b # c" # "d"`, want: []Pair{{"A", "b # c"}}},
		{name: "a comment after a quote that is part of the value", line: `A=6"x # the "wide" one`, want: []Pair{{"A", `6"x`}}},
		{name: "a comment after an unclosed quote", line: `A="b # c`, want: []Pair{{"A", `"b`}}},
		{name: "unneeded escapes", line: `A=\b\c\\`, want: []Pair{{"A", `bc\`}}},
		{name: "an escaped blank is a blank", line: `A=b\ C=d`, want: []Pair{{"A", "b"}, {"C", "d"}}},
		{name: "escaped quotes are quotes", line: `A=\"b c\"`, want: []Pair{{"A", "b c"}}},
		{name: "blanks of every kind", line: "\v A \t=\f b\r\vC=d ", want: []Pair{{"A", "b"}, {"C", "d"}}},
		{name: "empty quotes", line: `A="" C=d`, want: []Pair{{"A", ""}, {"C", "d"}}},
		{name: "empty quotes at the end", line: `A=""`, want: []Pair{{"A", ""}}},
		{name: "text after the quote", line: `A="b"c D=e`, want: []Pair{{"A", `"b"c`}, {"D", "e"}}},
		{name: "arithmetic signs", line: "A+=b C -=d E*= f G/=h", want: []Pair{{"A", "b"}, {"C", "d"}, {"E", "f"}, {"G", "h"}}},
		{name: "an equals sign in the value", line: "A=b=c", want: []Pair{{"A", "b=c"}}},
		{name: "the next pair as the value", line: "A= B=c", want: []Pair{{"A", "B=c"}}},
		{name: "bytes that are not UTF-8", line: "A=\xe4\xff # \xfc", want: []Pair{{"A", "\xe4\xff"}}},
		{name: "no equals sign", line: "A b", problem: "column 1: want Key=Value"},
		{name: "two arithmetic signs", line: "A++=b", problem: "column 1: want Key=Value"},
		{name: "no value", line: "A=", problem: "A: no value"},
		{name: "a blank in the value", line: "A=b c", problem: "column 5: want Key=Value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == nil && tt.problem == "" {
				tt.want = []Pair{{"A", "b"}}
			}
			c, _, err := readCluster("/c", files{"/c": minimal + "NodeName=n " + tt.line}.open)
			if tt.problem != "" {
				// readCluster would count the column from the beginning of the
				// line, including "NodeName=n ". So the test parses only
				// tt.line.
				_, err := parsePairs(tt.line)
				if err == nil || err.Error() != tt.problem {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Nodes[0].Pairs[1:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestControllers checks the list of controllers and its order, for the new
// keys and for the old keys.
func TestControllers(t *testing.T) {
	const ignoredWarning = "/c: ControlMachine and BackupController are ignored because SlurmctldHost is set"
	tests := []struct {
		name, text string
		want       []Host
		warning    string
		problem    string
	}{
		{name: "in the file's order", text: "SlurmctldHost=b\nSlurmctldHost=a(10.0.0.1)", want: []Host{{"b", "b"}, {"a", "10.0.0.1"}}},
		{name: "an IPv6 address", text: "SlurmctldHost=a(fd00::1)", want: []Host{{"a", "fd00::1"}}},
		{name: "old key", text: "ControlMachine=a", want: []Host{{"a", "a"}}},
		{name: "old key, with an address", text: "ControlMachine=a\nControlAddr=10.0.0.1", want: []Host{{"a", "10.0.0.1"}}},
		{name: "old keys of a primary and a backup", text: "BackupAddr=10.0.0.2\nControlMachine=a\nBackupController=b", want: []Host{{"a", "a"}, {"b", "10.0.0.2"}}},
		{name: "several names of one machine", text: "ControlMachine=a,b\nControlAddr=ab", want: []Host{{"a", "ab"}}},
		{name: "new and old keys", text: "ControlMachine=a\nBackupController=b\nSlurmctldHost=c", want: []Host{{"c", "c"}}, warning: ignoredWarning},
		{name: "new key in the other spelling", text: "ControlMachine=a\nSchedctldHost=c", want: []Host{{"c", "c"}},
			warning: "/c: ControlMachine and BackupController are ignored because SchedctldHost is set"},
		{name: "addresses alone", text: "SlurmUser=s\nControlAddr=10.0.0.1\nBackupAddr=10.0.0.2", problem: "/c: SlurmctldHost is missing"},
		{name: "a backup alone", text: "BackupController=b", problem: "/c: SlurmctldHost is missing"},
		{name: "not a name", text: "ControlMachine=a/b", problem: "/c:2: ControlMachine: want the name or address of one machine"},
		{name: "not an address", text: "SlurmctldHost=a()", problem: "/c:2: SlurmctldHost: want the name or address of one machine"},
		{name: "text after the address", text: "SlurmctldHost=a(b)c", problem: "/c:2: SlurmctldHost: want name or name(address)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\n" + tt.text}.open)
			if tt.problem != "" {
				if err == nil || err.Error() != tt.problem {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Controllers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := strings.Join(texts(warnings), "\n"); got != tt.warning {
				t.Errorf("warned %q, want %q", got, tt.warning)
			}
			if !c.SlurmKeys || c.AuthType != "auth/munge" {
				t.Errorf("Slurm's keys: %t, %s", c.SlurmKeys, c.AuthType)
			}
		})
	}
}

// TestEmptySlurmConf checks the error for an empty file. It must name the
// missing keys in Slurm's spelling, because the file is called slurm.conf.
func TestEmptySlurmConf(t *testing.T) {
	_, _, err := readCluster("/etc/slurm.conf", files{"/etc/slurm.conf": ""}.open)
	const want = "/etc/slurm.conf: the file is empty\n/etc/slurm.conf: ClusterName is missing\n/etc/slurm.conf: SlurmctldHost is missing"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestMunge checks the configured socket of munged, and the configured lifetime
// of its credentials.
func TestMunge(t *testing.T) {
	tests := []struct {
		name, text string
		socket     string // socket of our own controller
		want       Munge
		accounting string
		warning    string
		problem    string
	}{
		{name: "default", want: munged.Munge},
		{name: "a socket", text: "AuthInfo=socket=/run/m", want: Munge{Socket: "/run/m"}},
		{name: "a socket in the older form", text: "AuthInfo=/run/m", want: Munge{Socket: "/run/m"}},
		{name: "a lifetime", text: "AuthInfo=cred_expire=600,ttl=60", want: Munge{munged.Munge.Socket, time.Minute}},
		{name: "an invalid lifetime", text: "AuthInfo=ttl=soon", want: munged.Munge, warning: "/c:4: AuthInfo: ttl: want a number of seconds above 0, ignored"},
		{name: "not absolute", text: "AuthInfo=socket=m", problem: "/c:4: AuthInfo: want an absolute path"},
		{name: "another socket for accounting", text: "AccountingStoragePass=/run/global", want: munged.Munge, accounting: "/run/global"},
		{name: "another socket for accounting, as socket=", text: "AccountingStoragePass=socket=/run/global", want: munged.Munge, accounting: "/run/global"},
		{name: "a password", text: "AccountingStoragePass=secret,word", want: munged.Munge},
		{name: "the controller's own socket", text: "AuthType=auth/cred\nAuthInfo=socket=/run/ctl,ttl=60", socket: "/run/ctl"},
		{name: "no munge", text: "AuthType=auth/slurm\nAuthInfo=use_client_ids,ttl=60,socket=/run/m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "ClusterName=c\nSlurmctldHost=h\nAccountingStorageType=accounting_storage/slurmdbd\n" + tt.text
			c, warnings, err := readCluster("/c", files{"/c": text}.open)
			if tt.problem != "" {
				if err == nil || err.Error() != tt.problem {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Munge != tt.want || c.AuthSocket != tt.socket || c.Accounting.Munge != tt.accounting {
				t.Errorf("munged %+v, socket %q, for accounting %q", c.Munge, c.AuthSocket, c.Accounting.Munge)
			}
			if got := strings.Join(texts(warnings), "\n"); got != tt.warning {
				t.Errorf("warned %q, want %q", got, tt.warning)
			}
		})
	}
}

// TestTLSType checks in both configuration files whether the daemons use TLS.
func TestTLSType(t *testing.T) {
	on, off, wrong := "on", "off", "/c:3: TLSType: want tls/none or tls/s2n"
	for value, want := range map[string]string{"tls/none": off, "none": off, "TLS/None": off, "tls/s2n": on, "s2n": on, "TLS/S2N": on, "tls/openssl": wrong, "yes": wrong} {
		cluster, _, err := readCluster("/c", files{"/c": minimal + "TLSType=" + value}.open)
		dbd, _, dbdErr := readDbd("/c", files{"/c": "StorageLoc=/s\n\nTLSType=" + value}.open)
		for i, err := range []error{err, dbdErr} {
			got := off
			switch {
			case err != nil:
				got = err.Error()
			case i == 0 && cluster.SecureRPC, i == 1 && dbd.SecureRPC:
				got = on
			}
			if got != want {
				t.Errorf("%s: %s, want %s", value, got, want)
			}
		}
	}
}

// TestTLSFiles checks the paths of the certificates and keys for TLS between
// daemons.
func TestTLSFiles(t *testing.T) {
	tests := []struct {
		name, parameters       string
		ca, ctld, dbd          string
		caErr, ctldErr, dbdErr string
	}{
		{name: "defaults", ca: "/etc/x/ca_cert.pem", ctld: "/etc/x/ctld_cert.pem /etc/x/ctld_cert_key.pem", dbd: "/etc/x/dbd_cert.pem /etc/x/dbd_cert_key.pem"},
		{name: "all given", parameters: "ca_cert_file=/1,CTLD_cert_file=/2,ctld_cert_key_file=/3/,dbd_cert_file=/4,dbd_cert_key_file=/5,security_policy_version=x,load_system_certificates",
			ca: "/1", ctld: "/2 /3", dbd: "/4 /5"},
		{name: "not absolute", parameters: "ca_cert_file=a,ctld_cert_file=b,dbd_cert_key_file=c",
			caErr: "ca_cert_file: want an absolute path", ctldErr: "ctld_cert_file: want an absolute path", dbdErr: "dbd_cert_key_file: want an absolute path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "TLSType=tls/s2n\n"
			if tt.parameters != "" {
				text += "TLSParameters=" + tt.parameters + "\n"
			}
			cluster, warnings, err := readCluster("/etc/x/c", files{"/etc/x/c": minimal + text}.open)
			included, _, includedErr := readCluster("/c", files{"/c": "Include /etc/x/slurm.conf\nTLSParameters=restd_cert_file=/r", "/etc/x/slurm.conf": minimal + text}.open)
			if includedErr != nil {
				t.Fatal(includedErr)
			}
			path, err2 := included.ca()
			check(t, path, tt.ca, err2, tt.caErr)
			if restd, err := included.RestdTLS(); err != nil || restd.Certificate != "/r" {
				t.Errorf("restd_cert_file=%s, %v", restd.Certificate, err)
			}
			dbd, dbdWarnings, dbdErr := readDbd("/etc/x/c", files{"/etc/x/c": "StorageLoc=/s\n" + text}.open)
			if err != nil || dbdErr != nil || len(warnings)+len(dbdWarnings) > 0 {
				t.Fatal(err, dbdErr, warnings, dbdWarnings)
			}
			ca, err := cluster.ca()
			check(t, ca, tt.ca, err, tt.caErr)
			ctld, err := cluster.Certificate()
			check(t, strings.TrimSpace(ctld.Chain+" "+ctld.Key), tt.ctld, err, tt.ctldErr)
			own, err := dbd.Certificate()
			if tt.dbdErr == "" {
				check(t, own.Chain+" "+own.Key, tt.dbd, err, "")
			} else {
				check(t, "", "", err, tt.dbdErr)
			}
		})
	}
}

// check compares a result and an error with what is wanted.
func check(t *testing.T, got, want string, err error, problem string) {
	t.Helper()
	if problem != "" {
		want = ""
	}
	if got != want || (err == nil) != (problem == "") || err != nil && !strings.HasSuffix(err.Error(), ": TLSParameters: "+problem) {
		t.Errorf("got %q, %v; want %q, %q", got, err, want, problem)
	}
}

// TestIncludeNames checks which files an Include reads.
func TestIncludeNames(t *testing.T) {
	deep := files{}
	for i := range 20 {
		deep[fmt.Sprintf("/etc/%d", i)] = fmt.Sprintf("Include %d", i+1)
	}
	tests := []struct {
		name, text string
		extra      files
		read       []string
		problem    string
	}{
		{name: "relative to the first file, not to the file with the line", text: "Include /site/a", extra: files{"/site/a": "Include b", "/etc/b": ""}, read: []string{"/site/a", "/etc/b"}},
		{name: "the cluster's name", text: "Include d/%c.conf", extra: files{"/etc/d/c.conf": ""}, read: []string{"/etc/d/c.conf"}},
		{name: "one file twice", text: "Include a\nInclude a", extra: files{"/etc/a": "NodeName=n"}, read: []string{"/etc/a", "/etc/a"}},
		{name: "characters that Slurm does not treat as a pattern", text: "Include a[1]?", extra: files{"/etc/a[1]?": ""}, read: []string{"/etc/a[1]?"}},
		{name: "white space before, a comment after", text: " \tinclude\ta # b", extra: files{"/etc/a": ""}, read: []string{"/etc/a"}},
		{name: "a pattern", text: "Include conf.d/*", problem: "/etc/c:3: Include takes one file name, not a pattern"},
		{name: "a file that includes itself", text: "Include c", problem: "/etc/c:3: /etc/c includes itself: /etc/c, /etc/c"},
		{name: "too deep", text: "Include 0", extra: deep, problem: "/etc/15:1: too many files included"},
		{name: "too many", text: strings.Repeat("Include a\n", maxFiles), extra: files{"/etc/a": ""}, problem: "/etc/c:1026: too many files included"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all := files{"/etc/c": minimal + tt.text}
			for path, text := range tt.extra {
				all[path] = text
			}
			c, _, err := readCluster("/etc/c", all.open)
			if tt.problem != "" {
				if err == nil || err.Error() != tt.problem {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.read, c.Files[1:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, _, err := readCluster("/etc/c", files{"/etc/c": "Include %c\n" + minimal, "/etc/c.conf": ""}.open)
	if want := "/etc/c:1: %c in a file name stands for ClusterName, which must be set before"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestPassedLines checks that a malformed line causes no error or warning if it
// begins with a key that this project does not use, such as NodeSet.
func TestPassedLines(t *testing.T) {
	for _, line := range []string{"NodeSet=a Nodes=", "DownNodes=a word", "FrontendName=a FrontendAddr", "SwitchName=s Switches=a, b", "BlockName=b Nodes="} {
		c, warnings, err := readCluster("/c", files{"/c": minimal + line}.open)
		if err != nil || len(warnings) > 0 || c.SlurmKeys {
			t.Errorf("%s: %q, %v", line, warnings, err)
		}
	}
}

// TestManyClusterFiles checks that an Include with %c does not parse the lines
// before it again.
func TestManyClusterFiles(t *testing.T) {
	nodes, list := strings.Repeat("NodeName=n CPUs=1\n", 1000), files{"/etc/c": ""}
	allocations := func(includes int) float64 {
		list["/etc/slurm.conf"] = minimal + nodes + strings.Repeat("Include %c\n", includes)
		return testing.AllocsPerRun(3, func() {
			if _, _, err := readCluster("/etc/slurm.conf", list.open); err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, many := allocations(1), allocations(50); many > 2*one {
		t.Errorf("%v allocations with one file, %v with many", one, many)
	}
}
