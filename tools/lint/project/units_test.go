package project

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unitSettings returns the settings of a unit file or drop-in. Each key
// contains the section, as in "[Socket] Accept". A setting that occurs several
// times has its last value.
func unitSettings(text string) map[string]string {
	settings, section := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, isSetting := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case isSetting && section != "" && !strings.HasPrefix(line, "#"):
			settings[section+" "+strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return settings
}

// unitFaults returns the settings with which systemd could close the sockets of
// a unit while the machine runs. Such a unit would free its ports, and a local
// user who binds one of them receives the tokens of all clients. By default,
// systemd stops a socket unit after 20 connections in 2 s that its service did
// not accept (200 with Accept=yes), when its service has reached its limit of
// starts, or when the unit itself has reached that limit.
func unitFaults(socket, service map[string]string) (faults []string) {
	if socket["[Socket] TriggerLimitIntervalSec"] != "0" {
		faults = append(faults, "no TriggerLimitIntervalSec=0: many connections stop the unit")
	}
	if socket["[Unit] StartLimitIntervalSec"] != "0" {
		faults = append(faults, "no StartLimitIntervalSec=0: several starts stop the unit")
	}
	if socket["[Socket] Accept"] != "yes" && service["[Unit] StartLimitIntervalSec"] != "0" {
		faults = append(faults, "its service has no StartLimitIntervalSec=0: several failures of the service stop the socket unit")
	}
	if !strings.HasSuffix(socket["[Unit] OnFailure"], "-relisten@%n.service") {
		faults = append(faults, "no OnFailure= that starts it again")
	}
	return faults
}

// TestSocketUnits checks that no setting of a socket unit, or of a drop-in for
// one, lets systemd close the sockets.
func TestSocketUnits(t *testing.T) {
	t.Chdir(root)
	n := 0
	for _, dir := range []string{"deploy", "tools/packaging"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if name, isUnit := strings.CutSuffix(path, ".socket.in"); isUnit {
				n++
				socket := unitSettings(string(text))
				service, err := os.ReadFile(filepath.Join(filepath.Dir(path), cmp.Or(socket["[Socket] Service"], filepath.Base(name)+".service")+".in"))
				if err != nil && socket["[Socket] Accept"] != "yes" {
					return err
				}
				for _, fault := range unitFaults(socket, unitSettings(string(service))) {
					t.Errorf("%s: %s", path, fault)
				}
				recovery, _, _ := strings.Cut(socket["[Unit] OnFailure"], "%n")
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), recovery+".service.in")); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			} else if s := unitSettings(string(text)); s["[Socket] TriggerLimitBurst"]+s["[Socket] TriggerLimitIntervalSec"] != "" || strings.HasSuffix(path, ".socket") {
				t.Errorf("%s: is not checked by this test", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n == 0 {
		t.Error("no socket units were found")
	}
}

// TestUnitFaults checks that TestSocketUnits finds each kind of fault.
func TestUnitFaults(t *testing.T) {
	t.Chdir(root)
	const good = "[Unit]\nStartLimitIntervalSec=0\nOnFailure=x-relisten@%n.service\n[Socket]\nTriggerLimitIntervalSec=0\n"
	const service = "[Unit]\nStartLimitIntervalSec=0\n"
	for name, tt := range map[string]struct {
		socket, service string
		want            int
	}{
		"good":                           {good, service, 0},
		"a trigger limit":                {good + "TriggerLimitIntervalSec=2\nTriggerLimitBurst=1000\n", service, 1},
		"the default trigger limit":      {strings.Replace(good, "Trigger", "#Trigger", 1), service, 1},
		"a limit of starts":              {strings.Replace(good, "StartLimitIntervalSec=0\n", "", 1), service, 1},
		"the service's limit of starts":  {good, "[Unit]\n", 1},
		"Accept=yes needs no such limit": {good + "Accept=yes\n", "", 0},
		"no recovery":                    {strings.Replace(good, "OnFailure", "#OnFailure", 1), service, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if faults := unitFaults(unitSettings(tt.socket), unitSettings(tt.service)); len(faults) != tt.want {
				t.Errorf("%d faults %q, want %d", len(faults), faults, tt.want)
			}
		})
	}
}

// TestProcessorShare checks that the units of gateways that listen set a weight.
// Without one, systemd need not divide the processors between services, and a
// user with many processes could open connections faster than the gateway
// closes them.
func TestProcessorShare(t *testing.T) {
	t.Chdir(root)
	for _, unit := range []string{"schedrestd.service", "schedrestd@.service", "schedrestd-users.service"} {
		text, err := os.ReadFile("deploy/systemd/" + unit + ".in")
		shared, sharedErr := os.ReadFile("deploy/systemd/service.conf")
		if err := cmp.Or(err, sharedErr); err != nil {
			t.Fatal(err)
		}
		if unitSettings(strings.Replace(string(text), "@SERVICE@", string(shared), 1))["[Service] CPUWeight"] == "" {
			t.Errorf("%s has no CPUWeight=", unit)
		}
	}
}

// TestMemoryLimits checks that the units limit the memory of a compromised process, that
// the gateways that serve several clients survive such a limit, and that no limit applies
// to the jobs, which are descendants of schedctld.
func TestMemoryLimits(t *testing.T) {
	t.Chdir(root)
	shared, err := os.ReadFile("deploy/systemd/service.conf")
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string][2]string{
		"schedrestd.service":        {"4G", "continue"},
		"schedrestd@.service":       {"4G", "continue"},
		"schedrestd-users.service":  {"50%", "continue"},
		"schedrestd-inetd@.service": {"1G", ""},
		"scheddbd.service":          {"512M", ""},
		"schedctld.service":         {"", "continue"},
	} {
		text, err := os.ReadFile("deploy/systemd/" + unit + ".in")
		if err != nil {
			t.Fatal(err)
		}
		s := unitSettings(strings.Replace(string(text), "@SERVICE@", string(shared), 1))
		if got := [2]string{s["[Service] MemoryMax"], s["[Service] OOMPolicy"]}; got != want {
			t.Errorf("%s has MemoryMax= and OOMPolicy= %q, want %q", unit, got, want)
		}
		if s["[Service] MemoryHigh"] != "" || s["[Service] TasksMax"] == "" || s["[Service] LimitNOFILE"] == "" && unit != "scheddbd.service" {
			t.Errorf("%s has MemoryHigh=, no TasksMax= or no LimitNOFILE=", unit)
		}
	}
}
