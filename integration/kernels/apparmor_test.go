package kernels

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"schedrestd/integration/kernels/plan"
)

// profiles maps the names of AppArmor profiles for the gateway to their texts.
var profiles = map[string]func() (string, error){
	// The profile that the packages install, enforced.
	"installed": func() (string, error) {
		text, err := os.ReadFile("../../deploy/apparmor.d/schedrestd")
		enforced := strings.Replace(string(text), "flags=(complain, ", "flags=(", 1)
		if err == nil && enforced == string(text) {
			err = errors.New("deploy/apparmor.d/schedrestd is not in complain mode")
		}
		return enforced, err
	},
	// Ubuntu from 23.10 on lets a program without a profile create a user namespace,
	// but then gives it a profile that permits everything except capabilities.
	"ubuntu": func() (string, error) {
		return `abi <abi/3.0>,
profile schedrestd /usr/local/sbin/schedrestd flags=(attach_disconnected) {
  file,
  /** ix,
  network,
  unix,
  signal,
  ptrace,
  mount,
  umount,
  pivot_root,
}
`, nil
	},
}

// writeProfiles compiles the profiles for the kernel of the machine.
func writeProfiles(a *archive) error {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		return missing{"apparmor_parser is not installed"}
	}
	for name, text := range profiles {
		source, err := text()
		if err != nil {
			return err
		}
		var compiled, problems bytes.Buffer
		cmd := exec.Command(parser, "--stdout", "--skip-cache", "--kernel-features", "/etc/apparmor.d/abi/3.0")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(source), &compiled, &problems
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("compile AppArmor profile %s: %w\n%s", name, err, &problems)
		}
		a.file("apparmor/"+name, 0o644, compiled.Bytes())
	}
	return nil
}

const apparmor = "/sys/kernel/security/apparmor/"

// withProfile returns the steps that load a profile, start the gateway with it,
// and remove it.
func withProfile(name string, start plan.Step) []plan.Step {
	shell := func(step, script string) plan.Step {
		return plan.Step{Name: step + " AppArmor profile " + name + " for " + start.Name, Argv: []string{"/bin/sh", "-c", script}, Limit: checkLimit}
	}
	return []plan.Step{
		shell("load", "cat /apparmor/"+name+" >"+apparmor+".replace && cat "+apparmor+"profiles && grep -q '^schedrestd (enforce)' "+apparmor+"profiles"),
		start,
		shell("remove", "printf schedrestd >"+apparmor+".remove"),
	}
}
