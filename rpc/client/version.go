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

// findVersion returns the protocol version that d speaks. If that is unknown,
// it sends pings, from the newest version downwards. Daemons can't negotiate a
// version, and releases refuse an unsupported version in different ways: up to
// 24.05 they close the connection, 24.11 answers "not authenticated" in its own
// version, and 26.05 answers with HTTP text.
//
// From 24.11 on, daemons refuse a wrong credential in the version of the ping,
// so the refusal shows the version. Older releases close the connection also on
// a wrong credential: see probeVersion.
func (c *Client) findVersion(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if v := d.knownVersion(); v != 0 {
		return v, nil
	}
	return c.probeVersion(ctx, d, cred, 0)
}

// recheckVersion finds out why d, which last spoke v, closed the connection of
// a request at version v. It returns nil if d still answers, perhaps with
// another version.
func (c *Client) recheckVersion(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) *failure {
	_, f := c.probeVersion(ctx, d, cred, v)
	if f != nil {
		f.probe = true
	}
	return f
}

// closingVersions are the versions to try with releases that close the
// connection on a wrong credential. 22.05 to 23.11 speak the first, 24.05 the
// second.
var closingVersions = []codec.Version{codec.V2205, codec.V2405}

// probeVersion sends pings to d, returns the version that d speaks, and stores
// it. v is the version that d last spoke, or 0 if that is unknown. If d closes
// the connection on each version, its stored version is kept (see closedError).
//
// A client that sends wrong credentials must not cause a connection to the
// daemon for each version and credential. So after a few failures, a credential
// is first tried in closingVersions.
//
// If a probe does not reach d, the requests that wait for the probe share its
// failure. Otherwise they would wait for an absent machine one after the other,
// until no time is left.
func (c *Client) probeVersion(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (codec.Version, *failure) {
	failedBefore, _ := d.lastConnectFailure()
	select {
	case d.probe <- struct{}{}:
		defer func() { <-d.probe }()
	case <-ctx.Done():
		return 0, newFailure(stageReceive, fmt.Errorf("wait for %s: %w", d.name, context.Cause(ctx)))
	}
	if found := d.knownVersion(); found != 0 && found != v {
		return found, nil // found by the probe that this one waited for
	}
	if n, lastFailure := d.lastConnectFailure(); n != failedBefore {
		return 0, lastFailure
	}
	try := func(v codec.Version) *failure {
		answer, f := c.exchange(ctx, d, v, cred, ping, nil)
		if f != nil {
			return f
		}
		defer answer.release()
		if _, err := decodeRC(answer); err != nil { // no controller answers a ping like this
			return newFailure(stageDecode, fmt.Errorf("answer to a ping: %w", err))
		}
		return nil
	}
	descend, limited := d.descend, d.tooManyProbes(c.now())
	if limited {
		descend = d.descendLimited
	}
	found, f := descend(try)
	switch {
	case f == nil:
	case f.stage == stageClosed:
		if !limited {
			d.recordClosedProbe(c.now(), c.waitsForRequest(ctx, d, cred))
		}
		f.err = c.closedError(d, f.err)
	case c.isUnreachable(ctx, d, cred, f):
		d.recordConnectFailure(f)
	}
	return found, f
}

// isUnreachable reports whether f means that d can't be reached at all. It
// returns false if munged or a sack.socket failed, if ctx has ended, or if the
// credential can be used only on some of d's addresses.
func (c *Client) isUnreachable(ctx context.Context, d *daemon, cred model.Credential, f *failure) bool {
	_, classified := errors.AsType[*errs.Error](f.err)
	return f.stage == stageConnect && !classified && ctx.Err() == nil && (!cred.Local() || c.usesIssuer(d))
}

// closedError returns the error for a daemon that closes the connection on
// every version. Usually the error says that the credential is wrong. It does
// not for a release that would answer a wrong credential with an error. Nor
// does it for a daemon that never answered and does not wait for a request,
// such as a load balancer whose daemon is down.
func (g *daemons) closedError(d *daemon, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lastVersion > codec.V2405 || d.lastVersion == 0 && !d.waited {
		return err
	}
	return errs.Wrap(err, errs.Unauthenticated, "the %s closes the connection: it does not accept the credential, or speaks none of the protocols of Slurm %s to %s",
		g.kind, codec.Oldest.Release(), codec.Newest.Release())
}

// patience is the time for which a daemon must keep a silent connection open to
// count as waiting for a request. Slurm's daemons wait for several seconds.
const patience = time.Second

// waitsForRequest connects to d, sends nothing, and reports whether d waits for
// a request. If d has ever answered, it returns true without connecting.
func (c *Client) waitsForRequest(ctx context.Context, d *daemon, cred model.Credential) bool {
	if d.hasAnswered() {
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
	return isTimeout(err)
}

// lastConnectFailure returns the number of probes that did not reach d, and the
// failure of the last one.
func (d *daemon) lastConnectFailure() (int, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.connectFailure
	return d.failedConnects, &f
}

// recordConnectFailure records a probe that reached d at none of its addresses.
func (d *daemon) recordConnectFailure(f *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failedConnects, d.connectFailure = d.failedConnects+1, *f
}

// tooManyProbes reports whether maxClosedProbes probes of d have failed within
// closedProbeWindow. Then d is first probed in closingVersions.
func (d *daemon) tooManyProbes(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closedProbes = slices.DeleteFunc(d.closedProbes, func(t time.Time) bool { return now.Sub(t) >= closedProbeWindow })
	return len(d.closedProbes) >= maxClosedProbes
}

// recordClosedProbe records that d closed the connection on every version, and
// whether it waits for requests.
func (d *daemon) recordClosedProbe(now time.Time, waited bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closedProbes, d.waited = append(d.closedProbes, now), waited
}

// Limits for tooManyProbes.
const (
	maxClosedProbes   = 6
	closedProbeWindow = time.Minute
)

// descendLimited calls try(v) for each version v in closingVersions. If d
// closes the connection every time, it gives up, so that a wrong credential
// costs only these connections. If d supports one of these versions, or answers
// that it does not, descendLimited calls descend.
func (d *daemon) descendLimited(try func(codec.Version) *failure) (codec.Version, *failure) {
	var f *failure
	for _, v := range closingVersions {
		if f = try(v); f == nil || f.stage == stageVersion {
			return d.descend(try)
		}
		if f.stage != stageClosed {
			return 0, f
		}
	}
	return 0, f
}

// descend calls try with each version, the newest first, until a call succeeds.
// It stores and returns that version.
func (d *daemon) descend(try func(codec.Version) *failure) (codec.Version, *failure) {
	var refused []error
	last := newFailure(stageClosed, nil)
	for v := codec.Newest; v >= codec.Oldest; {
		f := try(v)
		if f == nil {
			d.setVersion(v)
			return v, nil
		}
		if f.stage != stageVersion && f.stage != stageClosed {
			return 0, f // not a refusal of the version
		}
		if f.stage == stageVersion {
			last.stage = stageVersion
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
