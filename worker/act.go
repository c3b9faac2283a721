package worker

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"schedrestd/ipc"
	"schedrestd/security/seal"
	"schedrestd/security/self"
)

// ActArgs is the arguments after ipc.ActMode, when the program is started to prove the cage.
func ActArgs(args []string) (rest []string, ok bool) {
	at := len(args) - 3
	if at < 1 || args[at] != ipc.ActMode {
		return nil, false
	}
	return args[at+1:], true
}

// Act closes the cage as a worker does before it serves, and then does what kills; args are those of ActArgs. That it
// returns at all means that nothing killed the process, or that there was nothing to do: then it has told on its log
// what can be done, and gives 0.
func Act(args []string) int {
	signal.Ignore()
	if err := act(args[0], args[1]); err != nil {
		fmt.Fprintln(os.Stderr, ipc.SayFailed+err.Error())
		return 1
	}
	return 0
}

// actFiles is how many descriptors may be open: standard ones, and the runtime's own.
const actFiles = 32

func act(how, name string) error {
	s, err := strconv.ParseUint(how, 10, 8)
	if err != nil {
		return fmt.Errorf("how to close the cage: %w", err)
	}
	if err := self.Settle(); err != nil {
		return err
	}
	if err := self.Confine(actFiles, false); err != nil {
		return err
	}
	sealed, err := closeCage(ipc.Seal(s))
	if err != nil {
		return err
	}
	var says strings.Builder
	fmt.Fprintln(&says, ipc.SaySealed+sealed.Line())
	if name != "" {
		fmt.Fprintln(&says, ipc.SayAct+name)
		fmt.Fprint(os.Stderr, says.String())
		return seal.Commit(name)
	}
	for _, p := range seal.Probes(seal.Options{Unix: ipc.Seal(s)&ipc.SealUnix != 0}) {
		fmt.Fprintln(&says, ipc.SayProbe+p)
	}
	for _, a := range seal.Acts() {
		fmt.Fprintln(&says, ipc.SayAct+a)
	}
	_, err = fmt.Fprint(os.Stderr, says.String())
	return err
}
