package rest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/errs"
)

// A List says which part of a list a command needs. The parameters only save
// work: slurmrestd ignores filters and fields, and so do older gateways. So the
// caller must check for each entry whether it meets the conditions.
//
// A command that requests a list repeatedly uses the same List. From the second
// request on, the answer may be that nothing has changed (Meta.Unchanged).
type List struct {
	Filters url.Values // conditions that the entries must meet, by the names of the API's filters
	Fields  []string   // paths of the needed fields; nil for all
	Since   int64      // send the list only if it has changed since this time; 0 for always
	Query   url.Values // parameters that all servers support
	Fresh   bool       // the server must not answer with older data that it keeps
	Wait    bool       // the server may answer later, when the answer differs from the last one for this List
	Until   string     // for one job: the state for which the server waits instead, UntilRunning or UntilEnded; "" for none

	tag   string // entity tag of the last answer; "" if it had none
	waits bool   // the last answer showed that the server can wait
}

// narrows reports whether l asks for less than the whole list.
func (l *List) narrows() bool { return l != nil && len(l.Filters)+len(l.Fields) > 0 }

// query returns the parameters of a request for the list. If whole is set, they
// ask for all entries with all fields.
func (l *List) query(whole bool) url.Values {
	query := url.Values{}
	if l == nil {
		return query
	}
	maps.Copy(query, l.Query)
	if l.Since != 0 && (!l.waits || l.tag == "") { // a server that waits knows itself what has changed
		query.Set("update_time", strconv.FormatInt(l.Since, 10))
	}
	if l.Wait && l.waits && l.Until != "" {
		query.Set("until", l.Until)
	}
	if whole {
		return query
	}
	maps.Copy(query, l.Filters)
	if len(l.Fields) > 0 {
		query.Set("fields", strings.Join(l.Fields, ","))
	}
	return query
}

// header returns the header of a request for the list. With the tag of the last
// answer, the server sends the list only if it differs.
func (l *List) header() http.Header {
	h := http.Header{}
	if l != nil && l.tag != "" {
		h.Set("If-None-Match", l.tag)
	}
	if l != nil && l.Fresh {
		h.Set("Cache-Control", "no-cache")
	}
	if l != nil && l.Wait {
		h.Set("Prefer", preferWait)
	}
	return h
}

// Meta contains the information that accompanies the list in an answer.
type Meta struct {
	LastUpdate int64         // time of the last change
	Unchanged  bool          // nothing has changed since the last answer, or since List.Since; the list is absent or empty
	Wait       time.Duration // how long the server can delay its answers until something changes (List.Wait); 0 if it can't
}

// requestList requests the list at path and calls each(d) for every element. In
// the answer, the list is the value of the member that key names. The callback
// each must decode one element from d. If l is nil, requestList requests the
// whole list.
//
// If the server refuses a request for a part of the list, requestList requests
// the whole list, and so do all later calls.
func (c *Client) requestList(ctx context.Context, path string, l *List, key string,
	each func(*json.Decoder) error) (Meta, error) {
	entries := 0
	counted := func(d *json.Decoder) error {
		entries++
		return each(d)
	}
	whole := c.wholeLists.Load()
	m, err := c.requestPart(ctx, path, l, whole, key, counted)
	if whole || entries > 0 || !l.narrows() || !isRefusal(err) || ctx.Err() != nil {
		return m, err
	}
	refusal := err
	if m, err = c.requestPart(ctx, path, l, true, key, counted); err == nil {
		c.log("note: the server refuses the parameters, so schedctl requests whole lists and selects the entries itself: %v", refusal)
		c.wholeLists.Store(true)
	}
	return m, err
}

// isRefusal reports whether the server may have refused a request because of its
// parameters. slurmrestd also answers 500 to some parameters that it can't parse.
func isRefusal(err error) bool {
	if err == nil {
		return false
	}
	kind := errs.KindOf(err)
	return kind == errs.Invalid || kind == errs.Internal || kind == errs.Unsupported
}

// requestPart requests the part of a list that l describes or, if whole is set,
// the whole list. It records the entity tag of the answer in l.
func (c *Client) requestPart(ctx context.Context, path string, l *List, whole bool, key string,
	each func(*json.Decoder) error) (m Meta, err error) {
	query, header := l.query(whole), l.header()
	resp, err := c.do(ctx, http.MethodGet, path, query, nil, header)
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	if l != nil && l.Wait {
		m.Wait = appliedWait(resp.Header)
		l.waits = m.Wait > 0
	}
	if resp.StatusCode == http.StatusNotModified {
		if header.Get("If-None-Match") == "" && !query.Has("update_time") {
			return m, errs.New(errs.BadAnswer, "%s answered 304 to a request without a condition", c.addr)
		}
		m.Unchanged = true
		return m, nil
	}
	a, err := c.decodeList(ctx, resp, key, each)
	for _, w := range a.warnings {
		c.log("warning of the server: %s", w)
	}
	switch {
	case err != nil:
		return m, err
	case len(a.problems) > 0 && a.problems[0].Number == noChange:
		m.Unchanged = true
		return m, nil
	case len(a.problems) > 0:
		return m, problemsError(resp.StatusCode, a.problems)
	}
	m.LastUpdate = a.updated.Int()
	m.Unchanged = query.Has("update_time") && m.LastUpdate == 0 // slurmrestd answers this way
	if l != nil && !m.Unchanged {
		l.tag = resp.Header.Get("ETag")
	}
	return m, nil
}
