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

// speak finds the protocol version that d speaks and stores it. It sends pings,
// from the newest version downwards. Daemons can't negotiate a version, and
// releases refuse an unsupported version in different ways: up to 24.05 they
// close the connection, 24.11 answers "not authenticated" in its own version,
// and 26.05 answers with HTTP text.
//
// From 24.11 on, daemons refuse a wrong credential in the version of the ping,
// so the refusal shows the version. Older releases also close the connection on
// a wrong credential: see find.
func (c *Client) speak(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if v := d.known(); v != 0 {
		return v, nil
	}
	return c.find(ctx, d, cred, 0)
}

// doubt finds out why d, which last spoke v, closed the connection of a request
// at version v. It returns nil if d still answers, perhaps with another
// release.
func (c *Client) doubt(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) *failure {
	_, f := c.find(ctx, d, cred, v)
	if f != nil {
		f.probe = true
	}
	return f
}

// closers are the protocols to try with releases that close the connection on a
// wrong credential. 22.05 to 23.11 speak the first, 24.05 the second.
var closers = []codec.Version{codec.V2205, codec.V2405}

// find returns the version of a daemon. v is the version that the daemon last
// spoke, or 0 if that is unknown. A daemon that closes the connection on each
// version does not accept the credential, or is not one of Slurm's daemons (see
// closed). Then its stored version is kept.
//
// A client that sends wrong credentials must not cause a connection to the
// daemon for each version and credential. So after a few failures, a credential
// is first tried in the versions of closers.
//
// If a probe does not reach d, the requests that wait for the probe share its
// failure. Otherwise they would wait for an absent machine one after the other,
// until no time is left.
func (c *Client) find(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (codec.Version, *failure) {
	misses, _ := d.missedSo()
	select {
	case d.probe <- struct{}{}:
		defer func() { <-d.probe }()
	case <-ctx.Done():
		return 0, failed(unanswered, fmt.Errorf("wait for %s: %w", d.name, context.Cause(ctx)))
	}
	if found := d.known(); found != 0 && found != v {
		return found, nil // found by the probe that this one waited for
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
		if _, err := verdict(answer); err != nil { // no controller answers a ping like this
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

// lost reports whether f means that d can't be reached at all. It returns false
// if munged or a sack.socket failed, if ctx has ended, or if the credential can
// be used only on some of d's addresses.
func (c *Client) lost(ctx context.Context, d *daemon, cred model.Credential, f *failure) bool {
	_, other := errors.AsType[*errs.Error](f.err)
	return f.stage == unreached && !other && ctx.Err() == nil && (!cred.Local() || c.issued(d))
}

// closed returns the error for a daemon that closes the connection on every
// version. Usually the error says that the credential is wrong. There are two
// exceptions. One is a daemon whose release answers a wrong credential with an
// error. The other is a daemon that never answered and does not wait for a
// request, such as a load balancer whose daemon is down.
func (g *daemons) closed(d *daemon, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spoke > codec.V2405 || d.spoke == 0 && !d.patient {
		return err
	}
	return errs.Wrap(err, errs.Unauthenticated, "the %s closes on every version: it does not accept the credential, or it speaks none of the protocols of Slurm %s to %s",
		g.what, codec.Oldest.Release(), codec.Newest.Release())
}

// A daemon that receives nothing, and keeps the connection open for the time
// patience, counts as waiting for a request. Slurm's daemons wait for seconds.
const patience = time.Second

// waits connects to d, sends nothing, and reports whether d waits for a
// request. If d has ever answered, waits returns true without connecting.
func (c *Client) waits(ctx context.Context, d *daemon, cred model.Credential) bool {
	if d.answeredBefore() {
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

// missedSo returns the number of probes that did not reach d, and the last
// failure.
func (d *daemon) missedSo() (int, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.missed
	return d.misses, &f
}

// miss records a probe that did not reach d at any of its addresses.
func (d *daemon) miss(f *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.misses, d.missed = d.misses+1, *f
}

// tired reports whether so many probes of d failed recently that for a while it
// should be probed only in the versions of closers (see few).
func (d *daemon) tired(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vain = slices.DeleteFunc(d.vain, func(t time.Time) bool { return now.Sub(t) >= vainFor })
	return len(d.vain) >= maxVain
}

// note records a failed probe, and whether d waits for requests.
func (d *daemon) note(now time.Time, patient bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vain, d.patient = append(d.vain, now), patient
}

// After maxVain failed probes within vainFor, a daemon is first probed in the
// versions of closers (see tired).
const (
	maxVain = 6
	vainFor = time.Minute
)

// The method few calls try(v) for each version v in closers. If d closes the
// connection every time, the method gives up. So a credential that d does not
// accept costs only the connections for these versions. If d supports one of
// these versions, or answers that it does not, the method calls descend, which
// finds the newest version.
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

// descend calls try with each version, the newest first, until a call succeeds.
// Then it stores that version.
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
			return 0, f // not a refusal of the version
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
