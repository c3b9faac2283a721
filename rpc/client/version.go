package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// speak finds out which protocol version d speaks, with a ping: the newest first, then
// downwards. It remembers what it found. The daemons have no way to negotiate;
// they refuse a version each in its own way: up to 24.05 they close, 24.11 answers "not
// authenticated" in its own version, 26.05 answers with HTTP text.
//
// A wrong credential is refused in the version of the ping, which is an answer, from 24.11 on.
// Those before close on it as well: see find.
func (c *Client) speak(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if v := d.known(); v != 0 {
		return v, nil
	}
	return c.find(ctx, d, cred, 0)
}

// doubt finds out why d, which spoke v, closes on a question in v: nil when it goes on
// answering, perhaps as another release.
func (c *Client) doubt(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) *failure {
	_, f := c.find(ctx, d, cred, v)
	if f != nil {
		f.probe = true
	}
	return f
}

// closers are the newest protocols of which each release that closes on a wrong credential speaks one:
// 22.05 to 23.11 the one, 24.05 the other.
var closers = []codec.Version{codec.V2205, codec.V2405}

// find is speak for a daemon of which is known that it spoke v; 0: nothing, or no longer. One that closes on
// each version does not accept the credential, or is none of Slurm's (see closed): what is remembered of it stays.
//
// Whoever sends such credentials must not have each of them cost a daemon a connection for each
// version there is. When that has been in vain a few times, the next credential has to show in
// the versions of closers alone that it is better.
//
// Who waits for a probe that does not reach d has its failure: one after the other they would wait for a
// machine that is gone until no time is left.
func (c *Client) find(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (codec.Version, *failure) {
	misses, _ := d.missedSo()
	select {
	case d.probe <- struct{}{}:
		defer func() { <-d.probe }()
	case <-ctx.Done():
		return 0, failed(unanswered, fmt.Errorf("wait for %s: %w", d.name, context.Cause(ctx)))
	}
	if found := d.known(); found != 0 && found != v {
		return found, nil // by the probe that was waited for
	}
	if n, missed := d.missedSo(); n != misses {
		return 0, missed
	}
	try := func(v codec.Version) *failure {
		answer, f := c.exchange(ctx, d, v, cred, ping, nil)
		if f != nil {
			return f
		}
		defer answer.release()
		if _, err := verdict(answer); err != nil { // whoever says this to a ping is no controller, whatever version he wrote on it
			return failed(garbled, fmt.Errorf("answer to a ping: %w", err))
		}
		return nil
	}
	descend, tired := d.descend, d.tired(c.now())
	if tired {
		descend = d.few
	}
	found, f := descend(try)
	switch {
	case f == nil:
	case f.stage == silent:
		if !tired {
			d.note(c.now(), c.waits(ctx, d, cred))
		}
		f.err = c.closed(d, f.err)
	case c.lost(ctx, d, cred, f):
		d.miss(f)
	}
	return found, f
}

// lost tells whether f says that nobody reaches d, and not that munged did not answer, or that
// there was a way less or less time than there may be.
func (c *Client) lost(ctx context.Context, d *daemon, cred model.Credential, f *failure) bool {
	_, other := errors.AsType[*errs.Error](f.err)
	return f.stage == unreached && !other && ctx.Err() == nil && (!cred.Local() || c.munged(d))
}

// closed is the error for a daemon that closes on every version. Is it a refusal of the credential? Not by one whose
// release answers a wrong credential, nor by what was never heard to be a daemon and waits for no question: that is a
// balancer, say, whose daemon is down.
func (g *daemons) closed(d *daemon, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spoke > codec.V2405 || d.spoke == 0 && !d.patient {
		return err
	}
	return errs.Wrap(err, errs.Unauthenticated, "the %s closes on every version: it does not accept the credential, or it speaks none of the protocols of Slurm %s to %s",
		g.what, codec.Oldest.Release(), codec.Newest.Release())
}

// patience is how long a daemon that is asked nothing has to wait for a question to be taken for one. Slurm's wait
// for seconds.
const patience = time.Second

// waits asks d nothing, and tells whether it waits for a question. Of one that was ever heard it is not asked.
func (c *Client) waits(ctx context.Context, d *daemon, cred model.Credential) bool {
	if d.heard() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc, done, err := c.connect(ctx, d, cred)
	if err != nil {
		return false
	}
	defer done()
	defer watch(ctx, nc)()
	_, err = nc.Read(make([]byte, 1))
	return late(err)
}

// missedSo is how often a probe has not reached d, and the last one's failure.
func (d *daemon) missedSo() (int, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.missed
	return d.misses, &f
}

// miss remembers a probe that did not reach d by any way there is.
func (d *daemon) miss(f *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.misses, d.missed = d.misses+1, *f
}

// tired tells whether d was probed in vain so often that it is not to be for a while.
func (d *daemon) tired(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vain = slices.DeleteFunc(d.vain, func(t time.Time) bool { return now.Sub(t) >= vainFor })
	return len(d.vain) >= maxVain
}

// note remembers a probe in vain, and whether d is patient.
func (d *daemon) note(now time.Time, patient bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vain, d.patient = append(d.vain, now), patient
}

// A daemon is probed in vain so often in such a time.
const (
	maxVain = 6
	vainFor = time.Minute
)

// few is descend where one of closers is tried first, so that a credential which d does not
// accept costs no more than those.
func (d *daemon) few(try func(codec.Version) *failure) (codec.Version, *failure) {
	var f *failure
	for _, v := range closers {
		if f = try(v); f == nil || f.stage == unspoken {
			return d.descend(try)
		}
		if f.stage != silent {
			return 0, f
		}
	}
	return 0, f
}

// descend tries versions until try succeeds with one, which is remembered.
func (d *daemon) descend(try func(codec.Version) *failure) (codec.Version, *failure) {
	var refused []error
	last := failed(silent, nil)
	for v := codec.Newest; v >= codec.Oldest; {
		f := try(v)
		if f == nil {
			d.learn(v)
			return v, nil
		}
		if f.stage != unspoken && f.stage != silent {
			return 0, f // that is no refusal of a version
		}
		if f.stage == unspoken {
			last.stage = unspoken
		}
		refused = append(refused, fmt.Errorf("protocol %d: %w", v, f))
		if f.version >= codec.Oldest && f.version < v {
			v = f.version
		} else {
			v--
		}
	}
	last.err = fmt.Errorf("%s: %w", d.name, errors.Join(refused...))
	return 0, last
}
