package main

import (
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"schedrestd/conf"
	"schedrestd/privsep"
)

// checkConfinement prints what keeps the workers of such a start in their cage. It listens to nothing, and fails
// when anything is missing that the start could have.
func checkConfinement(o options, out, errOut io.Writer) error {
	signal.Ignore(syscall.SIGPIPE)
	if err := o.sound(); err != nil {
		return err
	}
	path, err := conf.Find(o.conf)
	if err != nil {
		return err
	}
	r := newReloader(o, path, errOut)
	r.usual = slog.LevelWarn // what a start says of itself is not what was asked for
	config, err := r.start()
	if err != nil {
		return err
	}
	config.Output = errOut
	return privsep.Check(config, out)
}
