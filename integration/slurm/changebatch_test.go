package slurm

import (
	"fmt"
	"slices"
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
	for i, tr := range batch {
		for side := range 2 {
			if c.send(tr, side); tr.statuses[side] == endsDaemon {
				c.clean(tg, baseline)
				c.runAlone(tr)
				c.runBatch(slices.Delete(batch, i, i+1))
				return
			}
		}
	}
	after := c.byOwner(tg, c.dump(tg))
	c.clean(tg, baseline)
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
			was, is := texts(before[tr.name(side)]), texts(after[tr.name(side)])
			tr.changed[side], tr.news[side] = was != is, linesNotIn(is, was)
		}
		c.compare(tr)
	}
}

// runAlone sends the request of a trial through one gateway, puts everything
// back, and does the same with the other gateway. It compares what the requests
// have changed, whatever it is.
func (c *changeForms) runAlone(tr *trial) {
	c.t.Helper()
	c.report.alone++
	tg := tr.target
	for side := range 2 {
		baseline := c.dump(tg)
		c.made++
		tr.number = c.made
		if tr.situation.make != nil {
			tr.situation.make(c, []string{tr.name(side)})
		}
		before := c.dump(tg)
		c.send(tr, side)
		after := c.dump(tg)
		c.clean(tg, baseline)
		tr.effects[side] = c.changes(tg, before, after, tr.name(side))
		tr.changed[side], tr.news[side] = len(tr.effects[side]) > 0, texts(tr.effects[side])
	}
	c.compare(tr)
}

// clean removes what a dump has and the baseline has not. If anything else has
// changed, it makes the cluster again.
func (c *changeForms) clean(tg *target, baseline map[string][]shown) {
	c.t.Helper()
	for round := range 3 {
		now, left := c.dump(tg), false
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
			return
		}
	}
	now := c.byOwner(tg, c.dump(tg))[""]
	was := c.byOwner(tg, baseline)[""]
	for _, s := range tg.shows {
		if fields := fieldsThatDiffer(was[s.label], now[s.label]); len(fields) > 0 {
			c.reset(fmt.Sprintf("after %s %s differs in %q: %.300s instead of %.300s", tg.operation(), s.label, fields, linesNotIn(texts(now), texts(was)), linesNotIn(texts(was), texts(now))))
			return
		}
	}
}
