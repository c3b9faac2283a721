package conf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRestd(t *testing.T) {
	tests := []struct {
		name, text string
		want       TLS
		problem    string
	}{
		{name: "default"},
		{name: "only parameters of other daemons", text: "ca_cert_file=/ca,ctld_cert_file=/c,load_system_certificates"},
		{name: "certificate and key", text: "restd_cert_file=/c.pem,restd_cert_key_file=/k.pem", want: TLS{Certificate: "/c.pem", Key: "/k.pem"}},
		{name: "all parameters", text: "RESTD_CERT_FILE=/a/../c,restd_cert_key_file=/k,restd_ca_file=/ca,restd_min_version=1.2",
			want: TLS{Certificate: "/c", Key: "/k", ClientCA: "/ca", TLS12: true}},
		{name: "version 1.3", text: "restd_cert_file=/c,restd_cert_key_file=/k,restd_min_version=1.3", want: TLS{Certificate: "/c", Key: "/k"}},
		{name: "no key", text: "restd_cert_file=/c", want: TLS{Certificate: "/c"}},
		{name: "relative", text: "restd_cert_file=c,restd_cert_key_file=/k", problem: "restd_cert_file: want an absolute path"},
		{name: "no path", text: "restd_ca_file=", problem: "restd_ca_file: want an absolute path"},
		{name: "old version", text: "restd_min_version=1.1", problem: "restd_min_version: want 1.2 or 1.3"},
		{name: "misspelt", text: "restd_ca_cert_file=/ca", problem: "unknown parameter restd_ca_cert_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			draft := &clusterDraft{Cluster: Cluster{Path: "/etc/c"}}
			if tt.text != "" {
				if err := setTLSParameters(&draft.TLS, tt.text); err != nil {
					t.Fatal(err)
				}
			}
			got, err := draft.RestdTLS()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			switch {
			case tt.problem == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), "/etc/c: TLSParameters: "+tt.problem)):
				t.Errorf("error %v, want %q", err, tt.problem)
			}
		})
	}
}
