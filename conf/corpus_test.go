package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// readTestdata reads testdata/slurm as /etc/slurm.
func readTestdata(path string) ([]byte, uint32, error) {
	data, err := os.ReadFile(filepath.Join("testdata/slurm", strings.TrimPrefix(path, "/etc/slurm/")))
	return data, 0, err
}

// TestCorpus reads files in the forms that sites use, and checks the settings
// that a gateway gets from them.
func TestCorpus(t *testing.T) {
	// The site function returns the settings that most of the files share. It
	// calls change to modify them.
	site := func(change func(*Cluster)) Cluster {
		c := Cluster{SlurmKeys: true, Controllers: []Host{{"ctl", "ctl"}}, ControllerPort: 6817, User: "slurm", MessageTimeout: 10 * time.Second, Auth: munged}
		change(&c)
		return c
	}
	tests := []struct {
		file              string
		want              Cluster
		nodes, partitions int
		warnings, problem []string // without the directory
	}{
		{file: "small.conf", nodes: 1, partitions: 1, want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers, c.StateSaveLocation = "desk", []Host{{"localhost", "localhost"}}, "/var/lib/slurm/slurmctld"
		})},
		{file: "ha.conf", nodes: 3, partitions: 3, want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers = "aurora", []Host{{"ctl1", "10.4.0.11"}, {"ctl2", "10.4.0.12"}, {"ctl3", "2001:db8:4::13"}}
			c.StateSaveLocation, c.MessageTimeout, c.ConnectTimeout, c.MorePorts = "/shared/slurm/state", time.Minute, 5*time.Second, 3
			c.Auth = Auth{AuthType: "auth/munge", Munge: Munge{"/var/run/munge/munge.socket.2", 2 * time.Minute}, JWT: true,
				JWTKey: "/shared/slurm/state/jwt_hs256.key", MaxTokenLifespan: 7 * 24 * time.Hour}
			c.Accounting = &Accounting{Host: "dbd1", BackupHost: "dbd2", Port: 6819}
		})},
		{file: "oldie.conf", nodes: 1, partitions: 1, want: site(func(c *Cluster) {
			c.ClusterName, c.User, c.Controllers = "oldie", "", []Host{{"head", "192.168.10.1"}, {"head2", "192.168.10.2"}}
		}), warnings: []string{"oldie.conf:10: CacheGroups: unknown key, ignored"}},
		{file: "site/slurm.conf", nodes: 2, partitions: 2, want: site(func(c *Cluster) {
			c.ClusterName, c.User, c.StateSaveLocation = "weather", "990", "/gpfs/slurm"
			c.Controllers, c.Accounting = []Host{{"wx-ctl-a", "wx-ctl-a"}, {"wx-ctl-b", "wx-ctl-b"}}, &Accounting{Host: "wx-dbd", Port: 6819}
			c.Auth = Auth{AuthType: "auth/munge", Munge: Munge{Socket: "/run/munge-slurm/munge.socket.2"}, JWT: true, JWTKey: "/gpfs/slurm/jwt_hs256.key"}
		})},
		{file: "cloud.conf", nodes: 1, partitions: 1, want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers = "burst", []Host{{"ip-10-0-0-5", "10.0.0.5"}}
			c.JWT, c.JWTKey, c.DebugFlags = true, "/opt/slurm/jwt_hs256.key", []string{"NO_CONF_HASH", "Power"}
			c.PrivateData = PrivateNone | PrivateCloud
		})},
		{file: "provider.conf", want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers = "campus", []Host{{"ctl.campus.example.org", "ctl.campus.example.org"}}
			c.JWT, c.JWKS, c.UserClaimField, c.DisableTokenCreation = true, "/etc/slurm/jwks.json", "preferred_username", true
			c.Accounting = &Accounting{Host: "localhost", Port: 6819}
		})},
		{file: "s2n.conf", want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers, c.SecureRPC = "sealed", []Host{{"ctl", "ctl"}}, true
		})},
		{file: "sack.conf", want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers = "keyed", []Host{{"ctl1", "ctl1"}, {"ctl2", "ctl2"}}
			c.Auth = Auth{AuthType: "auth/slurm", SlurmClientIDs: true, JWT: true, JWTKey: "/var/spool/jwt_hs256.key"}
			c.Configless = true
		})},
		{file: "latin1.conf", nodes: 1, want: site(func(c *Cluster) { c.ClusterName = "uni" })},
		{file: "bom.conf", want: site(func(c *Cluster) { c.ClusterName = "marked" })},
		{file: "signs.conf", nodes: 1, partitions: 1, want: site(func(c *Cluster) { c.ClusterName = "signs" })},
		{file: "repeated.conf", want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers, c.ControllerPort = "final", []Host{{"ctl1", "ctl1"}, {"ctl2", "ctl2"}}, 7000
			c.MessageTimeout, c.JWT, c.JWTKey = 30*time.Second, true, "/var/spool/jwt_hs256.key"
		}), warnings: []string{
			"repeated.conf: ControlMachine and BackupController are ignored because SlurmctldHost is set",
			"repeated.conf:9: ClusterName: repeated; the last one is used",
			"repeated.conf:11: SlurmUser: repeated; the last one is used",
			"repeated.conf:12: MessageTimeout: repeated; the last one is used",
			"repeated.conf:13: AuthAltTypes: repeated; the last one is used",
			"repeated.conf:17: SlurmctldPort: repeated; the last one is used",
		}},
		{file: "loud.conf", nodes: 1, partitions: 1, want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers = "loud", []Host{{"CTL1", "CTL1-IB"}, {"ctl2", "ctl2"}}
			c.JWT, c.JWTKey, c.Accounting = true, "/var/spool/jwt_hs256.key", &Accounting{Host: "DBD", Port: 6819}
		})},
		{file: "vip.conf", nodes: 1, want: site(func(c *Cluster) {
			c.ClusterName, c.Controllers, c.SharedAddress = "moving", []Host{{"a", "10.0.0.1"}, {"b", "10.0.0.2"}}, "10.0.0.100"
			c.JWT, c.JWTKey = true, "/var/spool/jwt_hs256.key"
			c.Accounting = &Accounting{Host: "shared-dbd", Port: 6819, Munge: "/run/munge-global/munge.socket.2"}
		}), warnings: []string{
			"vip.conf:9: AuthAltTypes: auth/slurm is supported only as AuthType, ignored",
		}},
		{file: "cut.conf", nodes: 1, want: site(func(c *Cluster) { c.ClusterName, c.StateSaveLocation = "cut", "/var/spool/slurm" }),
			warnings: []string{"cut.conf:5: the file ends within a continued line; it may be incomplete"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			c, warnings, err := readCluster("/etc/slurm/"+tt.file, readTestdata)
			got := texts(warnings)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "/etc/slurm/")
			}
			if diff := cmp.Diff(tt.warnings, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("warnings: (-want +got):\n%s", diff)
			}
			if err != nil {
				problem := strings.Split(strings.ReplaceAll(err.Error(), "/etc/slurm/", ""), "\n")
				if diff := cmp.Diff(tt.problem, problem); diff != "" {
					t.Errorf("problems: (-want +got):\n%s", diff)
				}
				return
			}
			if len(c.Nodes) != tt.nodes || len(c.Partitions) != tt.partitions {
				t.Errorf("%d node lines and %d of partitions, want %d and %d", len(c.Nodes), len(c.Partitions), tt.nodes, tt.partitions)
			}
			ignored := cmpopts.IgnoreFields(Cluster{}, "Path", "Files", "Nodes", "Partitions", "TLS")
			if diff := cmp.Diff(tt.want, *c, ignored); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if all, err := filepath.Glob("testdata/slurm/*.conf"); err != nil || len(all) != len(tests)-1 { // one of the files is in a subdirectory
		t.Errorf("%d files, %d are tested: %v", len(all), len(tests), err)
	}
}

// hugeConfig returns the configuration of a cluster that has n nodes, each on a
// line of its own.
func hugeConfig(n int) string {
	var b strings.Builder
	b.WriteString(minimal)
	for i := range n {
		fmt.Fprintf(&b, "NodeName=cn%05d NodeAddr=10.%d.%d.%d CPUs=128 Boards=1 SocketsPerBoard=2 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=515000 Feature=epyc,ib,rack%d State=UNKNOWN # bay %d\n",
			i, i>>16, i>>8&255, i&255, i/64, i%64)
	}
	return b.String()
}

// TestHuge reads the configurations of two large clusters: one with all nodes
// on one line, and one with thousands of lines.
func TestHuge(t *testing.T) {
	c, warnings, err := readCluster("/c", files{"/c": hugeConfig(20_000)}.open)
	if err != nil || len(warnings) > 0 || len(c.Nodes) != 20_000 {
		t.Errorf("%d warnings, %v", len(warnings), err)
	}
	names := strings.Repeat("cn00000,", 100_000) + "last"
	c, warnings, err = readCluster("/c", files{"/c": minimal + "NodeName=" + names + " CPUs=1\nLicenses=" + names}.open)
	if err != nil || len(warnings) > 0 || len(c.Nodes) != 1 || c.Nodes[0].Pairs[0].Value != names {
		t.Errorf("long lines: %d warnings, %v", len(warnings), err)
	}
}

func BenchmarkRead(b *testing.B) {
	text := hugeConfig(5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := readCluster("/c", files{"/c": text}.open); err != nil {
			b.Fatal(err)
		}
	}
}
