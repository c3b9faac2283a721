package cli

import (
	"context"
	"encoding/json"
	"slices"

	"schedrestd/become/nss"
	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/internal/typo"
)

// checkNames returns an error if a user or a partition that f names does not
// exist. Otherwise a misspelled name would look like an empty queue. It is
// called when all jobs have been listed, and asks the server only about names
// that no selected job has. What the server does not answer is not an error.
func (c *connection) checkNames(ctx context.Context, f *filter) error {
	return joinErrors(c.checkPartitions(ctx, f), c.checkUsers(ctx, f))
}

func (c *connection) checkPartitions(ctx context.Context, f *filter) error {
	names := f.unseen(f.partitions)
	if len(names) == 0 {
		return nil
	}
	var known []string
	err := c.Partitions(ctx, &rest.List{Fields: []string{"name"}}, func(p *rest.Partition, _ json.RawMessage) error {
		known = append(known, p.Name)
		return nil
	})
	if err != nil {
		c.log("note: partitions can't be checked: %v", err)
		return nil
	}
	return unknownNames("partition", names, known, "schedctl partitions lists the partitions")
}

func (c *connection) checkUsers(ctx context.Context, f *filter) error {
	names := slices.DeleteFunc(f.unseen(f.users), func(name string) bool {
		_, err := nss.LookupUser(name)
		return name == c.user || err == nil || errs.KindOf(err) != errs.NotFound
	})
	if len(names) == 0 {
		return nil
	}
	known, err := c.UserNames(ctx)
	switch {
	case err != nil && c.cluster == nil: // only the gateway's machine may know the users
		c.log("note: users can't be checked: %v", err)
		return nil
	case err != nil:
		known = nil
	}
	return unknownNames("user", names, known, "neither this machine nor the accounting records have this user")
}

// unseen returns those of the names that no job selected so far has.
func (f *filter) unseen(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return f.seen[name] })
}

// unknownNames returns an error with the names that are not known.
func unknownNames(kind string, names, known []string, hint string) (err error) {
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		e := errs.New(errs.NotFound, "%s %s is unknown", kind, printable.Text(name)).WithHint("%s", hint)
		if near := typo.Nearest(name, known); near != "" {
			e = e.WithHint("did you mean %s?", printable.Text(near))
		}
		err = joinErrors(err, e)
	}
	return err
}
