package slurm

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// othersChanged reports whether objects differ that belong to no trial.
func (c *changeForms) othersChanged(tg *target, before, after map[string][]shown) bool {
	return slices.ContainsFunc(tg.shows, func(s show) bool { return len(fieldsThatDiffer(before[s.label], after[s.label])) > 0 })
}

// changes returns the objects that are only in the dump after, and those that
// are only in the dump before, the latter with "gone" in the label.
func (c *changeForms) changes(tg *target, before, after map[string][]shown, name string) map[string][]shown {
	found := map[string][]shown{}
	for _, s := range tg.shows {
		count := map[string]int{}
		for _, o := range before[s.label] {
			count[c.stable(s, o, name).text()]++
		}
		for _, o := range after[s.label] {
			o = c.stable(s, o, name)
			if count[o.text()]--; count[o.text()] < 0 {
				found[s.label] = append(found[s.label], o)
			}
		}
		for _, o := range before[s.label] {
			o = c.stable(s, o, name)
			if count[o.text()] > 0 {
				count[o.text()]--
				found["gone from "+s.label] = append(found["gone from "+s.label], o)
			}
		}
	}
	return found
}

// class returns what an answer's status means for the effect.
func class(status int) string {
	switch {
	case status == endsDaemon:
		return "ends a daemon"
	case status == 0:
		return "crash"
	case status == http.StatusNotModified:
		return "unchanged"
	case status < 300:
		return "accepted"
	}
	return "refused"
}

// compare compares what came of the two requests of a trial.
func (c *changeForms) compare(tr *trial) {
	c.report.count(tr)
	theirs, ours := class(tr.statuses[0]), class(tr.statuses[1])
	if tr.statuses[1] >= 500 && tr.statuses[1] != http.StatusNotImplemented {
		c.differs(tr, fmt.Sprintf("ours answers %d", tr.statuses[1]))
	}
	if ours == "ends a daemon" {
		c.differs(tr, "ours ends a daemon")
	}
	if theirs == "ends a daemon" {
		c.differs(tr, "theirs ends a daemon")
	}
	if ours == "ends a daemon" || theirs == "ends a daemon" {
		return
	}
	if tr.target.matches != nil && tr.combined && ours == "accepted" {
		c.checkRemoved(tr)
	}
	// If both programs cause it, the objects do not differ.
	if slices.ContainsFunc(tr.effects[1]["scontrol job"], func(o shown) bool { return o["ScontrolEnds"] != "" }) {
		c.differs(tr, "ours ends scontrol")
	}
	if theirs == "refused" && ours == "refused" {
		if len(tr.changed[0]) > 0 && len(tr.changed[1]) > 0 && len(tr.differing()) == 0 { // the objects have changed by themselves
			return
		}
		for side, changed := range tr.changed {
			if len(changed) > 0 {
				c.differs(tr, [2]string{"theirs refuses and changes", "ours refuses and changes"}[side])
			}
		}
		return
	}
	if theirs != ours {
		switch {
		case theirs == "crash":
			c.differs(tr, "theirs crashes")
		case ours == "crash":
			c.differs(tr, "ours crashes")
		case theirs == "unchanged":
			c.differs(tr, "theirs answers 304")
		case ours == "accepted":
			c.differs(tr, "only ours accepts"+withoutEffect(tr.changed[1]))
		default:
			c.differs(tr, "only theirs accepts"+withoutEffect(tr.changed[0]))
		}
		if theirs != "unchanged" {
			return
		}
	}
	for _, field := range tr.differing() {
		c.differs(tr, "shows "+field)
	}
}

func withoutEffect(changed []string) string {
	if len(changed) == 0 {
		return ", without effect"
	}
	return ""
}

// differing returns the fields in which the two objects of a trial differ, each
// with the label of the show.
func (tr *trial) differing() []string {
	return tr.target.fieldsThatDiffer(tr.effects[0], tr.effects[1])
}

// fieldsThatDiffer compares two lists of objects for each show. Each field that
// it returns has the label of the show before it.
func (tg *target) fieldsThatDiffer(a, b map[string][]shown) (fields []string) {
	for _, s := range tg.shows {
		for _, label := range []string{s.label, "gone from " + s.label} {
			for _, field := range fieldsThatDiffer(a[label], b[label]) {
				fields = append(fields, label+"."+field)
			}
		}
	}
	return fields
}

// fieldsThatDiffer compares two lists of objects. Objects that are in both
// lists don't differ. The others are compared in order.
func fieldsThatDiffer(theirs, ours []shown) (fields []string) {
	rest := slices.Clone(ours)
	var left []shown
	for _, o := range theirs {
		if i := slices.IndexFunc(rest, func(p shown) bool { return len(o.differing(p)) == 0 }); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			left = append(left, o)
		}
	}
	switch {
	case len(left) > len(rest):
		return []string{"number of records"}
	case len(left) < len(rest):
		return []string{"number of records"}
	}
	byText := func(a, b shown) int { return strings.Compare(a.text(), b.text()) }
	slices.SortFunc(left, byText)
	slices.SortFunc(rest, byText)
	found := map[string]bool{}
	for i := range left {
		for _, field := range left[i].differing(rest[i]) {
			found[field] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// differing returns the fields in which two objects differ.
func (o shown) differing(p shown) (fields []string) {
	for field, value := range o {
		if other, ok := p[field]; !ok || value != other && !sameTimes(value, other) {
			fields = append(fields, field)
		}
	}
	for field := range p {
		if _, ok := o[field]; !ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// sameTimes reports whether two texts are equal except for times that are less
// than a minute apart. The two requests of a trial are not sent at the same
// time.
func sameTimes(a, b string) bool {
	x, y := anyTime.FindAllString(a, -1), anyTime.FindAllString(b, -1)
	if len(x) == 0 || len(x) != len(y) || anyTime.ReplaceAllString(a, "") != anyTime.ReplaceAllString(b, "") {
		return false
	}
	for i := range x {
		if difference := seconds(x[i]) - seconds(y[i]); difference < -60 || difference > 60 {
			return false
		}
	}
	return true
}

// anyTime matches the ways to write a time: as in ISO 8601, or in seconds since
// 1970.
var anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\b[12]\d{9}\b`)

func seconds(text string) int64 {
	if t, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
		return t.Unix()
	}
	n, _ := strconv.ParseInt(text, 10, 64) // anyTime has matched it
	return n
}
