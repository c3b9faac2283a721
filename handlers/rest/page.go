package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
)

// A client gets a long list in pages, which are ordered by a key of the entries.
// A page begins after the last key of the previous page. The token for the next
// page contains this key. So a token never becomes too old, any worker accepts
// it, and an entry that exists all the time is in exactly one page, whatever
// else changes meanwhile.

// A part is the page of a list that a request asks for.
type part struct {
	limit int
	after string // key of the last entry of the previous page; "" for the first page
	query []byte // hash of what selects the entries
}

const (
	hashSize   = 8                   // length of part.query in bytes
	tokenStart = "\x01"              // version of the token's format
	pageNext   = `<?%s>; rel="next"` // RFC 8288; the reference keeps the path of the request, which a proxy may have changed
)

// readPage removes the parameters of a page from the other parameters, and sets
// q.part.
func (q *request) readPage(doc *schema.Value) error {
	if !q.route.Paged {
		return nil
	}
	limit, hasLimit, err := takeText(doc, api.LimitParameter.Name)
	if err != nil {
		return err
	}
	token, hasToken, err := takeText(doc, api.ContinueParameter.Name)
	if err != nil || !hasLimit && !hasToken {
		return err
	}
	if q.follows {
		name := api.LimitParameter.Name
		if !hasLimit {
			name = api.ContinueParameter.Name
		}
		return errs.New(errs.Invalid, "a stream of events sends the whole list").WithSource(InQuery+name).WithHint("omit %s, and select entries with filters", name)
	}
	p := &part{limit: api.MaxPage, query: q.hashQuery(doc)}
	if hasLimit {
		n, err := strconv.ParseUint(limit, 10, 31)
		if err != nil || n == 0 {
			return errs.New(errs.Invalid, "expected a number of entries, at least 1, got %q", schema.Shorten(limit)).WithSource(InQuery + api.LimitParameter.Name)
		}
		p.limit = int(min(n, api.MaxPage))
	}
	if hasToken {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
		rest, ok := bytes.CutPrefix(raw, []byte(tokenStart))
		switch source := InQuery + api.ContinueParameter.Name; {
		case err != nil || !ok || len(rest) <= hashSize:
			return errs.New(errs.Malformed, "not a token from meta.continue of a page").WithSource(source).WithHint("omit the parameter to get the first page")
		case !bytes.Equal(rest[:hashSize], p.query):
			return errs.New(errs.Invalid, "the token belongs to a list with other parameters").WithSource(source).
				WithHint("send the parameters of the first page again; only limit and fields may differ")
		}
		p.after = string(rest[hashSize:])
	}
	q.part = p
	return nil
}

// Page returns the key after which the page that the request asks for begins, and
// the maximum number of its entries. If the request asks for no page, the limit
// is 0.
func (q *request) Page() (after string, limit int) {
	if q.part == nil {
		return "", 0
	}
	return q.part.after, q.part.limit
}

// takeText removes a parameter from the others and returns its value. It
// returns an error if the parameter was sent several times.
func takeText(doc *schema.Value, name string) (text string, ok bool, err error) {
	at := slices.IndexFunc(doc.Items, func(v schema.Value) bool { return v.Key == name })
	if at < 0 {
		return "", false, nil
	}
	v := doc.Items[at]
	doc.Items = slices.Delete(doc.Items, at, at+1)
	if v.Kind == schema.Array {
		return "", false, errs.New(errs.Invalid, "set more than once").WithSource(InQuery + name)
	}
	return v.Text, true, nil
}

// hashQuery returns a hash of the operation and of the parameters that select
// the entries of the list.
func (q *request) hashQuery(doc *schema.Value) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%t%q", q.route.Accounting, q.route.ID)
	for i := range doc.Items {
		v := &doc.Items[i]
		if v.Key == "update_time" { // a client may send the time of each page's answer
			continue
		}
		fmt.Fprintf(h, "%q%q%d", v.Key, v.Text, len(v.Items)) // the number, because the next parameter looks like two items
		for j := range v.Items {
			fmt.Fprintf(h, "%q", v.Items[j].Text)
		}
	}
	return h.Sum(nil)[:hashSize]
}

// Paged returns the entries of the list that are on the page that the request
// asks for, in the order of their keys. If the request asks for no page, Paged
// returns the list. The function key returns the key of an entry, which no other
// entry has at the same time, and which never changes.
//
// The list is read as a whole before its first entry is passed on. Only then is
// it known whether there is a next page. Paged adds it to the header of the
// answer and to meta.
func Paged[T any](c *Call, envelope *api.Envelope, key func(*T) string, list schema.Stream[T]) schema.Stream[T] {
	list = withWarning(c, envelope, list)
	if c.part == nil {
		return shared(c, list)
	}
	return shared(c, func(each func(*T) error) error {
		memory := c.Reserve()
		defer func() { memory.Shrink(memory.Size()) }()
		type entry struct {
			key   string
			value T
			size  int // memory
		}
		var entries []*entry // those with the lowest keys so far, sorted
		more := false
		err := list(func(value *T) error {
			k := key(value)
			if k <= c.part.after {
				return nil
			}
			if len(entries) == c.part.limit {
				more = true
				last := len(entries) - 1
				if k >= entries[last].key {
					return nil
				}
				memory.Shrink(entries[last].size)
				entries = entries[:last]
			}
			size := memoryOf(reflect.ValueOf(value))
			if !memory.Grow(size) {
				return errs.New(errs.Unavailable, "server busy: too many pages are being collected").WithHint("try again, or set a lower limit")
			}
			at, _ := slices.BinarySearchFunc(entries, k, func(e *entry, k string) int { return strings.Compare(e.key, k) })
			entries = slices.Insert(entries, at, &entry{k, *value, size})
			return nil
		})
		if err != nil {
			return err
		}
		if more {
			c.setNext(&envelope.Meta, entries[len(entries)-1].key)
		}
		for _, e := range entries {
			if err := each(&e.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// withWarning returns a Stream like list that adds a warning to the envelope if
// the list is empty and the client expects a warning. An envelope comes after the
// lists of its answer.
func withWarning[T any](c *Call, envelope *api.Envelope, list schema.Stream[T]) schema.Stream[T] {
	if !c.Lenient(api.NothingFound) {
		return list
	}
	return func(each func(*T) error) error {
		empty := true
		err := list(func(item *T) error { empty = false; return each(item) })
		if err == nil && empty {
			c.Warn(strings.TrimSuffix(InQuery, "/"), "no record matches the request")
			envelope.Warnings = c.warnings
		}
		return err
	}
}

// memoryOf returns the memory of what v refers to. An entry of a list contains
// texts of users, such as the dependency of a job, so the entries of a page may
// take a thousand times as much as usual.
func memoryOf(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			return int(v.Type().Elem().Size()) + memoryOf(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Pointer, reflect.Slice, reflect.Struct:
			for i := range v.Len() {
				n += memoryOf(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += memoryOf(v.Field(i))
		}
	}
	return n
}

// setNext adds the next page to the answer. The argument last is the last key of
// this page.
func (c *Call) setNext(meta *api.Meta, last string) {
	meta.Continue = base64.RawURLEncoding.EncodeToString(slices.Concat([]byte(tokenStart), c.part.query, []byte(last)))
	var query []string // the other parameters, as the client has written them, because another spelling could be too long
	for parameter := range strings.SplitSeq(c.r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		name, err := url.QueryUnescape(name)
		if err == nil && parameter != "" && !slices.Contains(aboutPage, name) {
			query = append(query, noDelimiters.Replace(parameter))
		}
	}
	query = append(query, fmt.Sprintf("%s=%d", api.LimitParameter.Name, c.part.limit), api.ContinueParameter.Name+"="+meta.Continue)
	c.Header().Set("Link", fmt.Sprintf(pageNext, strings.Join(query, "&")))
}

// aboutPage are the parameters of one page, which the URL of the next one lacks.
var aboutPage = []string{api.LimitParameter.Name, api.ContinueParameter.Name, api.WaitParameter.Name, api.UntilParameter.Name}

// noDelimiters escapes what would end the URL in the header Link.
var noDelimiters = strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", " ", "%20")
