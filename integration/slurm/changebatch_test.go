package slurm

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// runBatch makes two objects for each trial, sends all requests, and compares
// the objects. If a request has changed anything else, runBatch runs the halves
// of the batch again, to find it.
func (c *changeForms) runBatch(batch []*trial) {
	c.t.Helper()
	if len(batch) == 0 {
		return
	}
	tg, s := batch[0].target, batch[0].situation
	baseline := c.dump(tg)
	var names []string
	for _, tr := range batch {
		c.made++
		tr.number = c.made
		names = append(names, tr.name(0), tr.name(1))
	}
	if s.make != nil {
		s.make(c, names)
	}
	before := c.byOwner(tg, c.dump(tg))
	if ended := c.sendAll(batch); ended >= 0 {
		c.clean(tg, baseline, c.dump(tg))
		if !c.patient {
			c.patient = true
			c.runBatch(batch)
			c.patient = false
			return
		}
		c.runAlone(batch[ended])
		c.runBatch(slices.Delete(batch, ended, ended+1))
		return
	}
	dumped := c.dump(tg)
	after := c.byOwner(tg, dumped)
	c.clean(tg, baseline, dumped)
	if c.othersChanged(tg, before[""], after[""]) {
		if len(batch) == 1 {
			c.runAlone(batch[0])
			return
		}
		c.report.halved++
		c.runBatch(batch[:len(batch)/2])
		c.runBatch(batch[len(batch)/2:])
		return
	}
	for _, tr := range batch {
		for side := range 2 {
			tr.before[side], tr.effects[side] = before[tr.name(side)], after[tr.name(side)]
			tr.changed[side] = tg.fieldsThatDiffer(before[tr.name(side)], after[tr.name(side)])
		}
		c.compare(tr)
	}
}

// sendAll sends the requests of a batch. If a daemon of Slurm ends, sendAll
// starts it again, and returns the index of the trial whose request it sent last.
// Only if c is patient, this is the trial that has ended the daemon. Otherwise
// sendAll returns -1.
func (c *changeForms) sendAll(batch []*trial) int {
	c.t.Helper()
	failed := false
	for i, tr := range batch {
		for side := range 2 {
			if c.send(tr, side); tr.statuses[side] == endsDaemon {
				return i
			}
			failed = failed || tr.statuses[side] >= http.StatusInternalServerError
		}
	}
	if failed && !c.patient {
		time.Sleep(dying)
		if c.restartEnded() {
			return len(batch) - 1
		}
	}
	return -1
}

// runAlone sends the request of a trial through one gateway, puts everything
// back, and does the same with the other gateway. It compares what the requests
// have changed, whatever it is.
func (c *changeForms) runAlone(tr *trial) {
	c.t.Helper()
	c.report.alone++
	tg := tr.target
	defer func(patient bool) { c.patient = patient }(c.patient)
	c.patient = true
	c.made++
	tr.number = c.made
	baseline := c.dump(tg)
	for side := range 2 {
		before := baseline
		if tr.situation.make != nil {
			tr.situation.make(c, []string{tr.name(side)})
			before = c.dump(tg)
		}
		c.send(tr, side)
		after := c.dump(tg)
		baseline = c.clean(tg, baseline, after)
		tr.effects[side] = c.changes(tg, before, after, tr.name(side))
		tr.changed[side] = slices.Sorted(maps.Keys(tr.effects[side]))
	}
	c.compare(tr)
}

// clean removes what the dump now has and the baseline has not. If anything else
// has changed, it makes the cluster again. It returns the last dump.
func (c *changeForms) clean(tg *target, baseline, now map[string][]shown) map[string][]shown {
	c.t.Helper()
	for round := range 4 {
		if round > 0 {
			now = c.dump(tg)
		}
		left := false
		for _, s := range tg.shows {
			known, named := map[string]bool{}, map[string]bool{}
			for _, o := range baseline[s.label] {
				known[c.stable(s, o, "").text()], named[o[s.key]] = true, true
			}
			extra := slices.DeleteFunc(slices.Clone(now[s.label]), func(o shown) bool { return known[c.stable(s, o, "").text()] })
			left = left || len(extra) > 0 || len(now[s.label]) != len(baseline[s.label])
			if len(extra) > 0 && s.remove != nil && (round > 0 || !s.last) {
				s.remove(c, slices.DeleteFunc(extra, func(o shown) bool { return named[o[s.key]] }))
			}
		}
		if !left {
			return now
		}
	}
	is, was := c.byOwner(tg, now)[""], c.byOwner(tg, baseline)[""]
	for _, s := range tg.shows {
		if fields := fieldsThatDiffer(was[s.label], is[s.label]); len(fields) > 0 {
			c.reset(fmt.Sprintf("after %s %s differs in %q: %.300s instead of %.300s", tg.operation(), s.label, fields, linesNotIn(texts(is), texts(was)), linesNotIn(texts(was), texts(is))))
			return c.dump(tg)
		}
	}
	return now
}
