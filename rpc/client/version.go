package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/tlsconn"
)

// findVersion returns the protocol version that d supports. If it is unknown,
// findVersion sends pings, beginning with the newest version. Daemons can't
// negotiate a version, and releases refuse an unsupported version in different
// ways: up to 24.05 they close the connection, 24.11 answers "not
// authenticated" in its own version, and 26.05 answers with HTTP text.
//
// A wrong credential must be distinguished from an unsupported version. From
// 24.11 on, daemons refuse a wrong credential in the version of the ping, so
// the answer shows that they support that version. Older releases close the
// connection on a wrong credential, too: see probeVersion.
func (c *Client) findVersion(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if v := d.knownVersion(); v != 0 {
		return v, nil
	}
	return c.probeVersion(ctx, d, cred, 0)
}

// recheckVersion finds out why d closed the connection after a request at
// version v. It returns nil if d still answers, possibly in another version.
// The v argument must be the last version that d is known to support.
func (c *Client) recheckVersion(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) *failure {
	_, f := c.probeVersion(ctx, d, cred, v)
	if f != nil {
		f.probe = true
	}
	return f
}

// closingVersions are the versions to try if d may run a release that closes
// the connection on a wrong credential. Slurm 22.05 to 23.11 supports V2205,
// and Slurm 24.05 supports V2405.
var closingVersions = []codec.Version{codec.V2205, codec.V2405}

// probeVersion sends pings to d. It stores and returns the version that d
// supports. The v argument is the version that d was last known to support, or
// 0 if there is none. If d closes the connection for every version, the stored
// version is kept (see closedError).
//
// Clients that send wrong credentials must not cause a connection to the daemon
// for each credential and each version. So after a few failures, a credential
// is first tried only with closingVersions.
//
// If a probe does not reach d, the requests that wait for the probe fail with
// the same error. Otherwise each of them in turn would wait for an absent
// machine, until no time is left.
func (c *Client) probeVersion(ctx context.Context, d *daemon, cred model.Credential, v codec.Version) (codec.Version, *failure) {
	failedBefore, _ := d.lastConnectFailure()
	place, err := d.probe.Acquire(ctx, holderOf(cred))
	if err != nil {
		return 0, newFailure(stageReceive, fmt.Errorf("wait for %s: %w", d.name, err))
	}
	defer place.Release()
	if found := d.knownVersion(); found != 0 && found != v {
		return found, nil // found by the probe that this one waited for
	}
	if n, lastFailure := d.lastConnectFailure(); n != failedBefore {
		return 0, lastFailure
	}
	try := func(v codec.Version) *failure {
		answer, f := c.exchange(ctx, d, v, cred, ping, reception{})
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

// isUnreachable reports whether f means that d can't be reached at any of its
// addresses. It returns false if munged or a sack.socket failed, if ctx has
// ended, or if the credential can be used only with some of d's addresses. A
// failed TLS handshake does not depend on the credential either.
func (c *Client) isUnreachable(ctx context.Context, d *daemon, cred model.Credential, f *failure) bool {
	_, classified := errors.AsType[*errs.Error](f.err)
	return f.stage == stageConnect && (!classified || errors.Is(f.err, tlsconn.ErrHandshake)) && ctx.Err() == nil && (!cred.Local() || c.usesIssuer(d))
}

// closedError returns the error for a daemon that closes the connection for
// every version. Usually the error says that the daemon does not accept the
// credential, or speaks none of our protocols. closedError returns err
// unchanged in two cases: if d's release answers a wrong credential with an
// error, or if d has never answered and does not wait for a request. In the
// second case, d may be a load balancer whose daemon is down.
func (c *caller) closedError(d *daemon, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lastVersion > codec.V2405 || d.lastVersion == 0 && !d.waited {
		return err
	}
	e := errs.New(errs.Unauthenticated, "the %s closes the connection: it does not accept the credential, or speaks none of the protocols of Slurm %s to %s",
		c.kind, codec.Oldest.Release(), codec.Newest.Release())
	if e.Err = err; c.cfg.TLS == nil {
		e.Hint = fault.TLSHint
	}
	return e
}

// patience is how long waitsForRequest waits on a silent connection. If the
// daemon keeps the connection open that long, waitsForRequest assumes that the
// daemon waits for a request. Slurm's daemons wait for several seconds.
const patience = time.Second

// waitsForRequest connects to d, sends nothing, and reports whether d waits for
// a request. If d has ever answered, it returns true without connecting.
func (c *Client) waitsForRequest(ctx context.Context, d *daemon, cred model.Credential) bool {
	if d.hasAnswered() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc, done, f := c.connect(ctx, d, cred)
	if f != nil {
		return false
	}
	defer done()
	defer watch(ctx, nc)()
	_, err := nc.Read(make([]byte, 1))
	return isTimeout(err)
}

// lastConnectFailure returns the number of probes that could not reach d, and
// the failure of the last such probe.
func (d *daemon) lastConnectFailure() (int, *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.connectFailure
	return d.failedConnects, &f
}

// recordConnectFailure records a probe that could not reach d at any of its
// addresses.
func (d *daemon) recordConnectFailure(f *failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failedConnects, d.connectFailure = d.failedConnects+1, *f
}

// tooManyProbes reports whether at least maxClosedProbes probes of d have
// failed within the last closedProbeWindow. If so, the next probe first tries
// only closingVersions.
func (d *daemon) tooManyProbes(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closedProbes = slices.DeleteFunc(d.closedProbes, func(t time.Time) bool { return now.Sub(t) >= closedProbeWindow })
	return len(d.closedProbes) >= maxClosedProbes
}

// recordClosedProbe records that d closed the connection for every version, and
// whether d waits for requests.
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
// supports one of these versions, or answers that a version is not supported,
// descendLimited calls descend. If d closes the connection for all of them,
// descendLimited gives up. So a wrong credential causes only these connections.
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

// descend calls try with each version, beginning with the newest, until a call
// succeeds. It stores and returns that version.
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
