package conf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add(minimal)
	f.Add("ClusterName=c\nSlurmctldHost=a(b)\\\nNodeName=n Comment=\"# x\" \\\nExtra=a\\#b # c\nInclude y\n=\n\"")
	f.Add("AuthAltParameters=jwt_key=/k,jwks=,userclaimfield=sub\nAuthInfo=socket=/s\nTLSParameters=a=b,c")
	f.Add("ClusterName=c\nSlurmctldHost=h\nSlurmctldAddr=v\nSlurmctldPort=1-9\nAuthType=auth/none\nAuthAltParameters=jwt_key=k,jwt_key=/k,new\nMessageTimeout=INFINITE\nTCPTimeout=0")
	corpus, err := filepath.Glob("testdata/slurm/*.conf")
	if err != nil || len(corpus) == 0 {
		f.Fatal(corpus, err)
	}
	for _, path := range corpus {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, warnings, err := readCluster("/c", files{"/c": text, "/y": "SchedUser=x"}.open)
		if err == nil && (c.ClusterName == "" || len(c.Controllers) == 0) {
			t.Errorf("accepted without a name or a controller: %+v", c)
		}
		lines := strings.Count(text, "\n") + 1
		for _, w := range warnings {
			if w.File == "/c" && w.Line > lines {
				t.Errorf("%s: the file has %d lines", w, lines)
			}
		}
		var problems Problems
		if errors.As(err, &problems); err != nil && len(problems) == 0 {
			t.Errorf("refused without a problem: %v", err)
		}
		if strings.Contains(text, "\r") || strings.Contains(text, "\ufeff") {
			return
		}
		crlfText := "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")
		crlfCluster, _, crlfErr := readCluster("/c", files{"/c": crlfText, "/y": "SchedUser=x"}.open)
		if fmt.Sprint(err) != fmt.Sprint(crlfErr) || !reflect.DeepEqual(c, crlfCluster) {
			t.Errorf("with CRLF and a byte order mark: %v and %+v\ninstead of %v and %+v", crlfErr, crlfCluster, err, c)
		}
		readDbd("/c", files{"/c": text}.open)
	})
}
