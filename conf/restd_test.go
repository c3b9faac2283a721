package conf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestdParameters checks the settings for slurmrestd. No value may be an error, not
// even in a file for our daemons, and a warning must name each word that has no
// effect.
func TestRestdParameters(t *testing.T) {
	for _, tt := range []struct {
		line, warn string
		want       Restd
	}{
		{line: "SlurmrestdParameters=conmgr_max_connections=500,workerpool_threads=8", want: Restd{Connections: 500, Threads: 8}},
		{line: "SlurmrestdParameters=Conmgr_Threads=8", want: Restd{Threads: 8}},
		{line: "SlurmrestdParameters=conmgr_use_poll,conmgr_read_timeout=7,colour", warn: `/c:3: SlurmrestdParameters: conmgr_use_poll: has no effect on this gateway; conmgr_read_timeout: has no effect on this gateway; unknown word "colour", ignored`},
		{line: "SlurmrestdParameters=conmgr_max_connections=0,conmgr_threads,workerpool_threads=-1", warn: "/c:3: SlurmrestdParameters: conmgr_max_connections: not a number above 0, ignored; conmgr_threads: not a number above 0, ignored; workerpool_threads: not a number above 0, ignored"},
		{line: "SlurmrestdParameters=conmgr_max_connections=99999999999999999999", warn: "/c:3: SlurmrestdParameters: conmgr_max_connections: not a number above 0, ignored"},
		{line: "SlurmrestdHttpAuthParameters=jwt_key=/k", warn: "/c:3: SlurmrestdHttpAuthParameters: has no effect on this gateway, which verifies tokens with the keys of AuthAltParameters"},
		{line: "SerializerParameters=Pretty,no_tag", want: Restd{Layout: []string{"pretty", "no_tag"}}},
		{line: "SerializerParameters=complex,tidy,compact", warn: `/c:3: SerializerParameters: complex: has no effect on this gateway; unknown word "tidy", ignored`, want: Restd{Layout: []string{"compact"}}},
		{line: "SerializerPlugins=json\nDefRuntimePlugin=x\nSlurmstepdParameters=y"},
	} {
		c, warnings, err := readCluster("/c", files{"/c": "ClusterName=c\nSchedctldHost=h\n" + tt.line + "\n"}.open)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		text := ""
		for _, w := range warnings {
			text += w.String()
		}
		if diff := cmp.Diff(tt.want, c.Restd); diff != "" || text != tt.warn {
			t.Errorf("%s: warnings %q\n%s", tt.line, text, diff)
		}
	}
}
