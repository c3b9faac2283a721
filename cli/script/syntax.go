package script

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/errs"
)

// syntaxes maps the name of a syntax to the function that parses a value of an
// option and sets the option's fields. The status page has the same functions,
// in web/src/core/sbatch.ts.
var syntaxes map[string]func(r *reader, o *option, v string) error

func init() {
	syntaxes = map[string]func(r *reader, o *option, v string) error{
		"text":          func(r *reader, o *option, v string) error { r.put(o, o.field, v); return nil },
		"file":          file,
		"fixed":         func(r *reader, o *option, _ string) error { r.put(o, o.field, o.detail); return nil },
		"words":         choice,
		"list":          list,
		"hosts":         hosts,
		"count":         count,
		"number":        number,
		"gpuCount":      gpuCount,
		"gpuMemory":     gpuMemory,
		"prefixed":      func(r *reader, o *option, v string) error { r.put(o, o.field, o.detail.(string)+v); return nil },
		"each":          each,
		"gres":          gres,
		"directory":     directory,
		"nodes":         nodes,
		"nice":          nice,
		"priority":      priority,
		"signal":        signal,
		"minutes":       minutes,
		"seconds":       seconds,
		"moment":        moment,
		"memory":        memory,
		"disk":          disk,
		"memoryBinding": memoryBinding,
		"memoryUpdate":  memoryUpdate,
		"switches":      switches,
		"layout":        layout,
		"variable":      func(r *reader, o *option, _ string) error { r.set("variable", o.detail); return nil },
		"export":        export,
	}
}

// numberObject returns the object with which the API represents the number n.
// The API uses such objects for numbers that may be unset.
func numberObject(n uint64) map[string]any { return map[string]any{"set": true, "number": n} }

// set sets a field of the job, or adds to its environment if the field is
// "variable".
func (r *reader) set(field string, value any) {
	if field == "variable" {
		r.variables = append(r.variables, value.(string))
		return
	}
	r.job[field] = value
}

// put sets a field of the job to which other options may contribute, too.
func (r *reader) put(o *option, field string, value any) {
	if !slices.Contains(joined, field) {
		r.set(field, value)
		return
	}
	if r.parts == nil {
		r.parts = map[string]map[string]any{}
	}
	if r.parts[field] == nil {
		r.parts[field] = map[string]any{}
	}
	r.parts[field][o.name] = value
	var texts, elements []string
	for i := range options {
		switch part := r.parts[field][options[i].name].(type) {
		case string:
			texts = append(texts, part)
		case []string:
			elements = append(elements, part...)
		}
	}
	delete(r.job, field)
	if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" }); len(texts) > 0 {
		r.job[field] = strings.Join(texts, ",")
	}
	if len(elements) > 0 {
		r.job[field] = elements
	}
}

// file stores the name of a file. As for sbatch, the name none means /dev/null.
func file(r *reader, o *option, v string) error {
	if strings.EqualFold(v, "none") {
		v = "/dev/null"
	}
	r.job[o.field] = v
	return nil
}

// choice sets the fields of the word that is the value.
func choice(r *reader, o *option, v string) error {
	known := o.detail.(words)
	fields, ok := known[strings.ToLower(v)]
	switch {
	case !ok && o.name == "propagate":
		return errs.New(errs.Malformed, "%s", expected(known)).WithHint("set limits in the script, with ulimit")
	case !ok:
		return errors.New(expected(known))
	}
	if o.name == "requeue" {
		r.put(o, "flags", []string(nil)) // of an earlier --requeue=expedite
	}
	for _, field := range sortedKeys(fields) {
		r.put(o, field, fields[field])
	}
	return nil
}

// list parses a list of words. A word that stands for nil means that the list is
// empty.
func list(r *reader, o *option, v string) error {
	known := o.detail.(map[string][]string)
	values := []string{}
	for word := range strings.SplitSeq(strings.ToLower(v), ",") {
		more, ok := known[word]
		if !ok {
			return errors.New(expected(known))
		}
		if more == nil {
			values = []string{}
			break
		}
		for _, value := range more {
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	if o.name == "gres-flags" && len(values) > 1 {
		return errors.New("the two flags exclude each other")
	}
	if r.put(o, o.field, values); len(values) == 0 && o.field == "mail_type" {
		delete(r.job, o.field) // the API ignores an empty list, with a warning
	}
	return nil
}

func expected[V any](known map[string]V) string {
	return "not one of " + strings.Join(slices.DeleteFunc(sortedKeys(known), func(s string) bool { return s == "" }), ", ")
}

func hosts(r *reader, o *option, v string) error {
	names, err := splitHosts(v)
	if err == nil {
		r.job[o.field] = names
	}
	return err
}

// splitHosts splits a list of host names. Commas within brackets are part of a
// name.
func splitHosts(v string) (names []string, err error) {
	depth, from := 0, 0
	for i, c := range v + "," {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			if i > from {
				names = append(names, v[from:i])
			}
			from = i + 1
		}
		if depth < 0 {
			break
		}
	}
	switch {
	case depth != 0:
		return nil, errors.New("a bracket is not closed or not opened")
	case len(names) == 0:
		return nil, errors.New("no names")
	}
	return names, nil
}

// parseCount parses a number from minimum on, which is less than the greatest
// that Slurm's commands accept.
func parseCount(v string, minimum int) (int, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || int(n) < minimum || n == 1<<31-1 {
		return 0, errors.New("not a number from " + strconv.Itoa(minimum) + " on")
	}
	return int(n), nil
}

func count(r *reader, o *option, v string) error {
	n, err := parseCount(v, o.detail.(int))
	if err == nil {
		r.job[o.field] = n
	}
	return err
}

func number(r *reader, o *option, v string) error {
	n, err := parseCount(v, o.detail.(int))
	if err == nil {
		r.job[o.field] = numberObject(uint64(n))
	}
	return err
}

func gpuCount(r *reader, o *option, v string) error {
	n, err := parseCount(v, 1)
	if err == nil {
		r.job[o.field] = "gres/gpu:" + strconv.Itoa(n)
	}
	return err
}

func gpuMemory(r *reader, o *option, v string) error {
	n, err := parseMemory(v)
	if err == nil {
		r.job[o.field] = "gres/gpu:" + strconv.FormatUint(n, 10)
	}
	return err
}

// each puts the resource before each count of a list. For gres/gpu, the value 2
// becomes gres/gpu:2, and the value a100:2 becomes gres/gpu:a100:2.
func each(r *reader, o *option, v string) error {
	parts := strings.Split(v, ",")
	for i := range parts {
		parts[i] = o.detail.(string) + parts[i]
	}
	r.put(o, o.field, strings.Join(parts, ","))
	return nil
}

func gres(r *reader, o *option, v string) error {
	if strings.EqualFold(v, "none") {
		r.put(o, o.field, "")
		return nil
	}
	parts := strings.Split(v, ",")
	for i, part := range parts {
		if !strings.HasPrefix(part, "gres/") {
			parts[i] = "gres/" + part
		}
	}
	r.put(o, o.field, strings.Join(parts, ","))
	return nil
}

func directory(r *reader, o *option, v string) error {
	if !strings.HasPrefix(v, "/") {
		base, _ := r.job[o.field].(string)
		v = strings.TrimRight(base, "/") + "/" + v
	}
	r.job[o.field] = v
	return nil
}

var nodeRange = regexp.MustCompile(`^(\d{1,9})([km]?)(?:-(\d{1,9})([km]?))?(?::\d{1,9})?$`)

// nodes sets the number of nodes. The value is N, MIN-MAX, or a list of these, in
// which MIN-MAX:STEP is possible, too. A number may end in k for 1024 or m for
// 1048576.
func nodes(r *reader, o *option, v string) error {
	lowest, highest := uint64(1<<31), uint64(0)
	for part := range strings.SplitSeq(v, ",") {
		m := nodeRange.FindStringSubmatch(strings.ToLower(part))
		if m == nil {
			return errors.New("not a number of nodes, MIN-MAX, or a list of these")
		}
		from := scaled(m[1], m[2])
		to := from
		if m[3] != "" {
			to = scaled(m[3], m[4])
		}
		if from == 0 || to < from || to >= 1<<31-1 {
			return errors.New("not a number of nodes, MIN-MAX, or a list of these")
		}
		lowest, highest = min(lowest, from), max(highest, to)
	}
	if strings.ContainsAny(v, "kKmM") {
		if strings.ContainsAny(v, ",:") {
			return errors.New("a list has no numbers with k or m")
		}
		if v = strconv.FormatUint(lowest, 10); highest != lowest {
			v += "-" + strconv.FormatUint(highest, 10)
		}
	}
	r.job[o.field] = v
	r.job["minimum_nodes"], r.job["maximum_nodes"] = int(lowest), int(highest)
	return nil
}

func scaled(digits, unit string) uint64 {
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil:
		return 1 << 31
	case unit == "k":
		return n << 10
	case unit == "m":
		return n << 20
	}
	return n
}

func nice(r *reader, o *option, v string) error {
	if v == "" {
		v = "100"
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || max(n, -n) > 1<<31-3 {
		return errors.New("not a number")
	}
	r.job[o.field] = int(n)
	return nil
}

// priority sets the priority. Slurm's number for TOP is the greatest one.
func priority(r *reader, o *option, v string) error {
	if strings.EqualFold(v, "TOP") {
		v = strconv.Itoa(1<<32 - 3)
	}
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n > 1<<32-3 {
		return errors.New("not a number, or too great")
	}
	r.job[o.field] = numberObject(n)
	return nil
}

var warning = regexp.MustCompile(`(?i)^(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9]+)(?:@(\d{1,9}))?$`)

// signal sets the signal that the job receives before its time limit, by default
// 60 seconds before it. The value has the form [R][B:]SIGNAL[@SECONDS].
func signal(r *reader, o *option, v string) error {
	m := warning.FindStringSubmatch(v)
	if m == nil {
		return errors.New("not [R][B]:SIGNAL[@SECONDS]")
	}
	targets, name, delay := strings.ToUpper(m[1]), strings.ToUpper(m[2]), uint64(60)
	if n, err := strconv.ParseUint(name, 10, 31); !slices.Contains(o.detail.([]string), name) && (err != nil || n < 1 || n > 64) {
		return errors.New("not a signal")
	}
	if m[3] != "" {
		var err error
		if delay, err = strconv.ParseUint(m[3], 10, 16); err != nil {
			return errors.New("not a number of seconds after @")
		}
	}
	var flags []string
	if strings.Contains(targets, "B") {
		flags = append(flags, "BATCH_JOB")
	}
	if strings.Contains(targets, "R") {
		flags = append(flags, "RESERVATION_JOB")
	}
	r.job["kill_warning_signal"] = name
	r.job["kill_warning_delay"] = numberObject(delay)
	delete(r.job, "kill_warning_flags")
	if flags != nil {
		r.job["kill_warning_flags"] = flags
	}
	return nil
}

// minutes sets a time limit, rounded up. As for sbatch, 0 means no limit.
func minutes(r *reader, o *option, v string) error {
	d, infinite, err := parseDuration(v)
	if err != nil {
		return err
	}
	if n := uint64((d + time.Minute - 1) / time.Minute); n > 0 && !infinite {
		r.job[o.field] = numberObject(n)
	} else {
		r.job[o.field] = map[string]any{"set": false, "infinite": true}
	}
	return nil
}

func seconds(r *reader, o *option, v string) error {
	d, infinite, err := parseDuration(v)
	switch {
	case err != nil:
		return err
	case infinite || d >= (1<<31-1)*time.Second:
		return errors.New("too long")
	}
	r.job[o.field] = int(d / time.Second)
	return nil
}

// moment sets a time, as an object or as a number of seconds.
func moment(r *reader, o *option, v string) error {
	now := r.now
	if now.IsZero() {
		now = time.Now()
	}
	at, err := parseMoment(v, now)
	switch {
	case err != nil:
		return err
	case o.detail == "seconds":
		r.job[o.field] = at.Unix()
	default:
		r.job[o.field] = numberObject(uint64(at.Unix()))
	}
	return nil
}

// memory stores an amount of memory in MiB, and removes the field whose name is
// in the detail: a job has a memory limit either per node or per CPU, so the last
// option takes effect.
func memory(r *reader, o *option, v string) error {
	n, err := parseMemory(v)
	if err != nil {
		return err
	}
	delete(r.job, o.detail.(string))
	r.job[o.field] = numberObject(n)
	return nil
}

func disk(r *reader, o *option, v string) error {
	n, err := parseMemory(v)
	if err != nil || n > 1<<31-1 {
		return errors.New("not an amount such as 500M or 10G")
	}
	r.job[o.field] = int(n)
	return nil
}

// memoryBinding parses [quiet|verbose,]TYPE, where TYPE may have a list of nodes
// after a colon.
func memoryBinding(r *reader, o *option, v string) error {
	known := o.detail.(map[string][]string)
	flags, nodeList := []string{}, ""
	rest := strings.ToLower(v)
	for rest != "" {
		word, after, _ := strings.Cut(rest, ",")
		if name, first, ok := strings.Cut(word, ":"); ok && (name == "map_mem" || name == "mask_mem") {
			word, nodeList, after = name, first, ""
			if _, others, more := strings.Cut(rest, ","); more { // the nodes are the rest of the value
				nodeList += "," + others
			}
		}
		more, ok := known[word]
		if !ok || (word == "map_mem" || word == "mask_mem") && nodeList == "" {
			return errors.New("not " + strings.Join([]string{"none, rank, local, map_mem:LIST", "mask_mem:LIST"}, " or ") + ", after quiet, verbose, prefer or nosort")
		}
		flags, rest = append(flags, more...), after
	}
	r.job[o.field] = flags
	delete(r.job, "memory_binding")
	if nodeList != "" {
		r.job["memory_binding"] = nodeList
	}
	return nil
}

// memoryUpdate parses MARGIN@DELAY, a percentage and a time.
func memoryUpdate(r *reader, _ *option, v string) error {
	margin, delay, _ := strings.Cut(v, "@")
	n, err := parseCount(margin, 1)
	d, infinite, durationErr := parseDuration(delay)
	m := (d + time.Minute - 1) / time.Minute
	if err != nil || durationErr != nil || infinite || n > 1<<16-3 || m < 1 || m > 1<<16-3 {
		return errors.New("not PERCENT@TIME")
	}
	r.job["memory_update_margin"], r.job["memory_update_delay"] = n, int(m)
	return nil
}

// switches parses COUNT[@TIME].
func switches(r *reader, _ *option, v string) error {
	most, wait, hasWait := strings.Cut(v, "@")
	n, err := parseCount(most, 1)
	if err != nil {
		return err
	}
	delete(r.job, "wait_for_switch")
	if hasWait {
		d, infinite, err := parseDuration(wait)
		if err != nil || infinite || d >= (1<<31-1)*time.Second {
			return errors.New("not COUNT@TIME")
		}
		r.job["wait_for_switch"] = int(d / time.Second)
	}
	r.job["required_switches"] = numberObject(uint64(n))
	return nil
}

// layout parses SOCKETS[:CORES[:THREADS]], in which * means any number.
func layout(r *reader, _ *option, v string) error {
	parts := strings.Split(v, ":")
	if len(parts) > 3 {
		return errors.New("not SOCKETS[:CORES[:THREADS]]")
	}
	for i, field := range []string{"sockets_per_node", "cores_per_socket", "threads_per_core"} {
		if delete(r.job, field); i >= len(parts) || parts[i] == "*" {
			continue
		}
		n, err := parseCount(parts[i], 1)
		if err != nil {
			return errors.New("not SOCKETS[:CORES[:THREADS]]")
		}
		r.job[field] = n
	}
	return nil
}

func export(r *reader, _ *option, v string) error {
	if _, err := environment(&v, nil); err != nil {
		return err
	}
	r.export = &v
	return nil
}
