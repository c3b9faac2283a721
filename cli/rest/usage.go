package rest

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"

	"schedrestd/internal/errs"
)

// Usage calls each for every record of a report of usage, in JSON. The query
// contains the parameters of the operation. slurmrestd does not have the
// operation: the error is then errs.Unsupported.
func (c *Client) Usage(ctx context.Context, query url.Values, each func(json.RawMessage) error) error {
	_, err := c.requestList(ctx, c.usagePath(), &List{Query: query}, "usage", decodeRaw(func(_ *struct{}, text json.RawMessage) error { return each(text) }))
	return c.withoutUsage(err)
}

// UsageTable calls each for every row of a report of usage as CSV. The first row
// contains the names of the columns.
func (c *Client) UsageTable(ctx context.Context, query url.Values, each func([]string) error) error {
	resp, err := c.do(ctx, http.MethodGet, c.usagePath(), query, nil, http.Header{"Accept": {"text/csv"}})
	if err != nil {
		return c.withoutUsage(err)
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/csv" {
		return errs.New(errs.BadAnswer, "%s sent no CSV", c.addr)
	}
	r := csv.NewReader(&boundedBody{body: resp.Body, total: maxTable, value: maxTable})
	r.ReuseRecord = true
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.unreadable(err, "table")
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// maxTable is the maximum length of a table in bytes.
const maxTable = 1 << 30

// usagePath returns the path of the operation. It exists only in this project's
// spelling.
func (c *Client) usagePath() string { return c.path("scheddb", "usage/") }

// withoutUsage returns the error for a request to a server that has no reports.
func (c *Client) withoutUsage(err error) error {
	if errs.KindOf(err) != errs.NotFound {
		return err
	}
	return errs.New(errs.Unsupported, "%s has no reports of usage", c.addr).
		WithHint("use sreport; of schedrestd, it needs a release with GET /scheddb/…/usage and not SCHEDRESTD_NAMES=slurm")
}
