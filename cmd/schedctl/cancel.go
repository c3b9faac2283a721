package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"schedrestd/cli"
	"schedrestd/errs"
)

func cancelCommand(dial connector) *cobra.Command {
	return cli.Cancel(func(cmd *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		c, err := dial()
		if err != nil {
			return err
		}
		var joined error
		for i, id := range ids {
			if err := c.client.Kill(cmd.Context(), c.credential, args[i], 9, 0); err != nil {
				joined = errors.Join(joined, fmt.Errorf("job %d: %w", id, err))
			}
		}
		return joined
	})
}

// jobIDs parses all job ids. The command calls jobIDs before it sends its first
// request.
func jobIDs(args []string) ([]uint32, error) {
	var ids []uint32
	for _, arg := range args {
		id, err := strconv.ParseUint(arg, 10, 32)
		if err != nil || id == 0 {
			return nil, errs.New(errs.Invalid, "%q is not a job number", arg)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}
