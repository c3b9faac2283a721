package conf

import "testing"

// TestPrivateData checks that PrivateData= accepts Slurm's words in both
// configuration files. Without PrivateData=, jobs and users must be private.
func TestPrivateData(t *testing.T) {
	tests := []struct {
		line string
		want PrivateData // hidden kinds
		bad  bool        // refused in a file for our daemons; in a site's file, everything is hidden
	}{
		{line: "", want: PrivateJobs | PrivateUsers},
		{line: "PrivateData=none"},
		{line: `PrivateData=""`},
		{line: "PrivateData=all", want: allPrivate},
		{line: "privatedata=ALL,jobs", want: allPrivate},
		{line: "PrivateData=Jobs,usage", want: PrivateJobs | PrivateUsage},
		{line: "PrivateData=accounts,cloud,events,jobs,nodes,partitions,reservations,usage,users", want: allPrivate},
		{line: "PrivateData=job,user", want: PrivateJobs | PrivateUsers},
		{line: "PrivateData=work", want: allPrivate, bad: true},
		{line: "PrivateData=none,jobs", want: allPrivate, bad: true},
		{line: "PrivateData=jobs,secrets", want: allPrivate, bad: true},
	}
	check := func(line string, p PrivateData, err error, want PrivateData, bad bool) {
		t.Helper()
		if (err != nil) != bad {
			t.Errorf("%s: %v", line, err)
			return
		}
		for name, kind := range privateKinds {
			if err == nil && p.Hides(kind) != (want&kind != 0) {
				t.Errorf("%s: %s hidden: %t", line, name, p.Hides(kind))
			}
		}
	}
	for _, tt := range tests {
		c, _, err := readCluster("/c", files{"/c": minimal + tt.line}.open)
		if err != nil {
			c = new(Cluster)
		}
		check(tt.line, c.PrivateData, err, tt.want, tt.bad)
		d, _, err := readDbd("/d", files{"/d": "StorageLoc=/s\n" + tt.line}.open)
		if err != nil {
			d = new(Dbd)
		}
		check(tt.line, d.PrivateData, err, tt.want, tt.bad)
		if c, _, err = readCluster("/c", files{"/c": "ClusterName=c\nSlurmctldHost=h\n" + tt.line}.open); err != nil {
			t.Fatal(err)
		}
		check(tt.line, c.PrivateData, err, tt.want, false)
	}
}
