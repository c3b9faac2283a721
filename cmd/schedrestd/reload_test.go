package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestReload: a file that changed is served, one that went bad changes nothing and says why, and what
// a running parent can't change is named.
func TestReload(t *testing.T) {
	path := site(t, sample)
	t.Setenv("SCHED_JWT", "daemon")
	o := asksFor(t, "-d", "v0.0.42", "unix:/s", ":1")
	var log bytes.Buffer
	r := newReloader(o, path, &log)
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		log.Reset()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	write(strings.Replace(sample, "=tiny", "=other", 1) + "DebugFlags=Network\nTLSParameters=restd_ca_file=/ca\n")
	setup, secrets, err := r.Reload()
	if err != nil || setup.Cluster != "other" || secrets.TLS.ClientCA != "/ca" || slog.Level(setup.LogLevel) != slog.LevelDebug {
		t.Errorf("%v %+v %+v", err, setup, secrets)
	}
	if len(setup.Parsers) != 1 || setup.Parsers[0] != (ipc.Parser{Version: 42}) {
		t.Errorf("what the command line said is forgotten: %v", setup.Parsers)
	}
	if r.level.Level() != slog.LevelInfo {
		t.Errorf("level %v of a configuration that nobody has accepted", r.level.Level())
	}
	r.Accepted()
	if strings.Contains(log.String(), "level=WARN") || r.level.Level() != slog.LevelDebug {
		t.Errorf("level %v, log:\n%s", r.level.Level(), &log)
	}

	write("ClusterName=\n")
	if _, _, err := r.Reload(); err == nil || !strings.Contains(err.Error(), path+":1: ") {
		t.Errorf("a bad file: %v", err)
	}
	if r.level.Level() != slog.LevelDebug {
		t.Errorf("a bad file changed the level to %v", r.level.Level())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Reload(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
}

// TestReloadFixed: what needs a restart.
func TestReloadFixed(t *testing.T) {
	path := site(t, sample)
	t.Setenv("SCHED_JWT", "daemon")
	o := asksFor(t, "unix:/s")
	var log bytes.Buffer
	r := newReloader(o, path, &log)
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	text := without(strings.Replace(sample, "SchedUser=root", "SchedUser=nobody", 1), "AuthAltTypes")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`key=SchedUser`, `key="AuthAltTypes (for the mode of UNIX sockets)"`} {
		if !strings.Contains(log.String(), "needs a restart") || !strings.Contains(log.String(), want) {
			t.Errorf("no %s in:\n%s", want, &log)
		}
	}
}
