package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"schedrestd/cli/mcp"
	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// Limits on the records that a tool shows, because a model reads all of them.
const (
	maxShown      = 50       // records
	maxShownBytes = 24 << 10 // of all records in JSON, after the first one
	maxShownText  = 1000     // bytes of a text
)

// The type shown contains the records of a list that a tool shows.
type shown struct {
	name   string // of the list
	fields []string
	limit  int
	list   []any
	size   int // of the list in bytes
	more   bool
}

func newShown(name, fields string) *shown {
	return &shown{name: name, fields: strings.Fields(fields), limit: maxShown, list: []any{}}
}

// limited limits the entries that the server sends for l, if it knows all
// conditions. Otherwise its first entries may be others.
func (s *shown) limited(l *rest.List, conditions ...[]string) *rest.List {
	n := 0
	for _, values := range conditions {
		n += min(len(values), 1)
	}
	if len(l.Filters) == n {
		l.Filters.Set("limit", strconv.Itoa(s.limit+1))
	}
	return l
}

// addIf adds a record of the server if the condition is true and there is space.
func (s *shown) addIf(condition bool, text json.RawMessage) error {
	if !condition || s.more {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var record map[string]any
	if err := d.Decode(&record); err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	short := map[string]any{}
	for _, name := range s.fields {
		short[name] = record[name]
	}
	shortForm("", short)
	written, err := json.Marshal(short)
	s.size += len(written)
	if s.more = len(s.list) == s.limit || len(s.list) > 0 && s.size > maxShownBytes; !s.more {
		s.list = append(s.list, short)
	}
	return err
}

// resultOf returns a result with these lists.
func resultOf(lists ...*shown) (r mcp.Result) {
	data := map[string]any{}
	for _, s := range lists {
		data[s.name] = s.list
		r.Text += fmt.Sprintf("%d %s. ", len(s.list), s.name)
		if s.more {
			r.Text += "There are more; select fewer with the arguments. "
		}
	}
	r.Data = data
	return r
}

// shortForm returns the value of a field as a tool shows it: nil if it is empty
// or unset, a plain number instead of an object, and a date instead of seconds.
// It escapes what can't be printed in texts, because a model also reads what
// people do not see.
func shortForm(name string, value any) any {
	empty := false
	switch v := value.(type) {
	case string:
		if v = printable.Text(v); len(v) > maxShownText {
			v = strings.ToValidUTF8(v[:maxShownText], "") + "…"
		}
		value, empty = v, v == ""
	case json.Number:
		if n, err := v.Int64(); err == nil && strings.HasSuffix(name, "_time") {
			value, empty = time.Unix(n, 0).UTC().Format(time.RFC3339), n == 0
		}
	case []any:
		for i := range v {
			v[i] = shortForm("", v[i])
		}
		empty = len(v) == 0
	case map[string]any:
		switch {
		case v["infinite"] == true:
			return "infinite"
		case v["set"] == true:
			return shortForm(name, v["number"])
		case v["set"] == false:
			return nil
		}
		for member := range v {
			if v[member] = shortForm(member, v[member]); v[member] == nil {
				delete(v, member)
			}
		}
		empty = len(v) == 0
	}
	if empty {
		return nil
	}
	return value
}
