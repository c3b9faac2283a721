package request

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/confserver"
	"schedrestd/rpc/confserver/confservertest"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// serve starts a controller that speaks the protocol v, and answers the request
// for configuration files with answer. It returns the controller's address.
func serve(t *testing.T, network string, v codec.Version, answer server.Handler) string {
	t.Helper()
	ln := confservertest.Listen(t, network)
	confservertest.Serve(t, ln, v, answer)
	return confservertest.Address(ln)
}

const text = "ClusterName=c\nSlurmctldHost=h(127.0.0.1)\n"

var slurmConf = model.ConfigFile{Name: "slurm.conf", Text: text, Exists: true}

func fetch(t *testing.T, servers, token string) (conf.Sent, error) {
	t.Helper()
	list, err := confserver.Parse(servers)
	if err != nil {
		t.Fatal(err)
	}
	return Fetch(t.Context(), confserver.Options{Servers: list, Token: token, Munge: "/nowhere/munge", Sack: []string{"/nowhere/sack"}, Log: slog.New(slog.DiscardHandler)}, nil)
}

// TestFetch fetches the configuration from controllers of several releases.
func TestFetch(t *testing.T) {
	for v := codec.Oldest; v <= codec.Newest; v++ {
		servers := serve(t, "unix", v, confservertest.Send(model.ConfigFile{Name: "plugstack.conf"}, slurmConf, model.ConfigFile{Name: "nodes.conf", Text: "NodeName=n", Exists: true}))
		got, err := fetch(t, servers, "")
		want := conf.Sent{Origin: servers, Files: map[string]string{"slurm.conf": text, "nodes.conf": "NodeName=n"}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("protocol %d: %v\n%s", v, err, diff)
		}
	}
}

// TestFetchFrom checks which controllers and credentials are used, and the
// errors.
func TestFetchFrom(t *testing.T) {
	good := serve(t, "unix", codec.Newest, confservertest.Send(slurmConf))
	overTCP := serve(t, "tcp", codec.Newest, confservertest.Send(slurmConf))
	empty := serve(t, "unix", codec.Newest, confservertest.Send(model.ConfigFile{Name: "slurm.conf", Exists: true}, model.ConfigFile{Name: "oci.conf", Text: "x", Exists: true}))
	none := serve(t, "unix", codec.Newest, confservertest.Send())
	many := serve(t, "unix", codec.Newest, confservertest.Send(make([]model.ConfigFile, 1025)...))
	long := serve(t, "unix", codec.Newest, confservertest.Send(model.ConfigFile{Name: "slurm.conf", Text: strings.Repeat("#", confserver.MaxAnswer), Exists: true}))
	refuse := func(number uint32) server.Handler {
		return func(context.Context, *server.Request) (message.Type, message.Body, error) {
			return 0, nil, fault.Of(number, "")
		}
	}
	disabled := serve(t, "unix", codec.Newest, refuse(fault.ConfiglessDisabled))
	standby := serve(t, "unix", codec.Newest, refuse(fault.StandbyUseBackup))
	secure := serve(t, "tcp", codec.Newest, refuse(fault.TLSRequired))
	ln := confservertest.Listen(t, "tcp")
	gone := confservertest.Address(ln)
	ln.Close()
	for _, tt := range []struct {
		name, servers, token string
		from                 string    // the controller that answers
		kind                 errs.Kind // of the error, if from is ""
		text, hint           string    // parts of the error and of its hint
	}{
		{name: "the first", servers: good + "," + disabled, from: good},
		{name: "the first is gone", servers: "unix:/nowhere/s," + good, from: good},
		{name: "the first is a backup", servers: standby + "," + good, from: good},
		{name: "the first has no address", servers: "nowhere.invalid," + good, from: good},
		{name: "token", servers: overTCP, token: confservertest.Token, from: overTCP},
		{name: "token, refused", servers: overTCP, token: "x.y.z", kind: errs.Unauthenticated, text: overTCP, hint: "SCHEDRESTD_CONF_TOKEN"},
		{name: "no credential", servers: overTCP, kind: errs.Unavailable, text: "neither munged nor sackd", hint: "start munged"},
		{name: "gone", servers: gone, token: confservertest.Token, kind: errs.Unavailable, text: gone, hint: "SCHEDRESTD_CONF_CA"},
		{name: "no address", servers: "nowhere.invalid", token: confservertest.Token, kind: errs.Unavailable, text: "nowhere.invalid:6817"},
		{name: "all are backups", servers: standby, kind: errs.Unavailable, text: "standby"},
		{name: "TLS is required", servers: secure, token: confservertest.Token, kind: errs.Unavailable, text: "requires TLS", hint: "name the file of the cluster's CA in SCHEDRESTD_CONF_CA"},
		{name: "not permitted", servers: disabled, kind: errs.Invalid, text: "disabled", hint: "SlurmctldParameters=enable_configless"},
		{name: "empty file", servers: empty, kind: errs.BadAnswer, text: "no slurm.conf"},
		{name: "no file", servers: none, kind: errs.BadAnswer, text: "no slurm.conf"},
		{name: "too many files", servers: many, kind: errs.BadAnswer, text: "1025 files"},
		{name: "too long", servers: long, kind: errs.BadAnswer, text: "the limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent, err := fetch(t, tt.servers, tt.token)
			if tt.from != "" {
				if err != nil || sent.Origin != tt.from || sent.Files[conf.MainFile] != text {
					t.Errorf("%+v, %v", sent, err)
				}
				return
			}
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.text) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("kind %v: %v (%s)", errs.KindOf(err), err, errs.HintOf(err))
			}
		})
	}
}
