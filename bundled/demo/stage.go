package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/internal/errs"
)

// tokenLifespan is how long the demo's token is valid.
const tokenLifespan = 24 * time.Hour

// stage is a running demo.
type stage struct {
	Options
	*home
	screen  screen
	daemons []*site.Daemon // in the order in which they were started
	url     string         // of the gateway
	gateway site.Gateway
}

// runStage does the work of the stage: it runs the demo, and then stops all of
// the demo's processes.
func runStage(opt Options) error {
	// Ctrl-C sends a signal to all processes at the terminal, but only the
	// first process, the front, may react to it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	ctx, err := frontContext()
	if err != nil {
		return err
	}
	if err := becomeSubreaper(); err != nil {
		return err
	}
	s := &stage{Options: opt, screen: newScreen(opt.Out)}
	err = s.run(ctx)
	if ctx.Err() != nil {
		err = interrupted(opt)
	}
	return errors.Join(err, s.stopAll(), remove(opt.Stage))
}

// interrupted returns the result of the demo after Ctrl-C. This is an error
// only with --once.
func interrupted(opt Options) error {
	if opt.Once {
		return errs.New(errs.Internal, "interrupted")
	}
	return nil
}

// frontContext returns a context that is cancelled when the pipe from the front
// is closed. Descriptor 3 is this process's end of the pipe. The front closes
// its end to stop the demo. If the front is killed, the kernel closes that end.
func frontContext() (context.Context, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(3, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil, errs.New(errs.Invalid, "--stage may be used only by schedctl itself")
	}
	syscall.CloseOnExec(3)
	front := os.NewFile(3, "front")
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, front)
		stop()
	}()
	return ctx, nil
}

// run runs a job, and then the demo until ctx is done or a daemon exits. If Once
// is set, it returns when the job has ended.
func (s *stage) run(ctx context.Context) (err error) {
	if s.home, err = createHome(s.Stage, s.TLS); err != nil {
		return err
	}
	s.screen.printTitle(s)
	if err := s.startDaemons(ctx); err != nil {
		return err
	}
	return s.watchDaemons(ctx, func(ctx context.Context) error {
		if err := s.showJob(ctx); err != nil || s.Once {
			return err
		}
		s.screen.printWelcome(s)
		<-ctx.Done()
		return ctx.Err()
	})
}

// startDaemons starts the daemons one after another. It starts each daemon only
// after the previous daemon has answered.
func (s *stage) startDaemons(ctx context.Context) error {
	bin, err := findBinaries()
	if err != nil {
		return err
	}
	if err := s.start(ctx, "accounting", s.Scheddbd(bin)); err != nil {
		return err
	}
	if err := s.start(ctx, "controller", s.Schedctld(bin)); err != nil {
		return err
	}
	gateway := s.Schedrestd(bin, s.Listen)
	gateway.Env = append(gateway.Env, "SCHEDRESTD_IDEMPOTENCY_FILE="+filepath.Join(s.Dir, "run", "idempotency"))
	if os.Geteuid() != 0 { // root's gateway reads output only for users whom the kernel names
		gateway.Env = append(gateway.Env, "SCHEDRESTD_OUTPUT=sockets")
	}
	if err := s.start(ctx, "gateway", gateway); err != nil {
		return err
	}
	return s.connectGateway(ctx, bin)
}

// start starts one daemon and waits until it answers.
func (s *stage) start(ctx context.Context, role string, p site.Part) error {
	startedAt := time.Now()
	d, err := site.Start(p)
	if err != nil {
		return err
	}
	s.daemons = append(s.daemons, d)
	if err := d.WaitReady(ctx); err != nil {
		s.screen.printLastLines(s.Err, d)
		return err
	}
	s.screen.printReady(role, p, time.Since(startedAt))
	return nil
}

// connectGateway requests a token for the demo's user, and creates a client of
// the gateway. The programs are in the directory bin.
func (s *stage) connectGateway(ctx context.Context, bin string) error {
	user := ""
	if s.hasOtherUser() {
		user = s.user.Name
	}
	token, err := s.Token(ctx, user, tokenLifespan)
	if err != nil {
		return err
	}
	s.url = s.daemons[len(s.daemons)-1].Address
	s.gateway = site.NewGateway(s.url, token)
	if err := s.writeToken(token); err != nil {
		return err
	}
	return s.writeEnv(s.url, bin)
}

// watchDaemons calls show and waits until it returns. If a daemon exits,
// watchDaemons cancels the context of show and returns an error that names the
// daemon.
func (s *stage) watchDaemons(ctx context.Context, show func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, d := range s.daemons {
		go func() {
			select {
			case <-d.Done():
				stop(&site.ExitedError{Daemon: d})
			case <-ctx.Done():
			}
		}()
	}
	err := show(ctx)
	if exited, ok := errors.AsType[*site.ExitedError](context.Cause(ctx)); ok {
		s.screen.printLastLines(s.Err, exited.Daemon)
		return exited
	}
	return err
}

// stopAll stops the gateway, the controller and the accounting daemon, in this
// order. Then it kills all other processes. Jobs outlive their controller, but
// must not outlive the demo.
func (s *stage) stopAll() error {
	for i := len(s.daemons) - 1; i >= 0; i-- {
		s.daemons[i].Stop()
	}
	return sweep()
}
