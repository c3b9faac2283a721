package privsep

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/notify"
	"schedrestd/printable"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/spawn"
)

// generation is a configuration with its open keys. The dispatcher builds
// services and workers from it.
type generation struct {
	id     uint32
	why    cause
	config Config
	keys   *keys.Keys
	strict bool // certificates that have replaced those in use must be usable
	begun  time.Time
	home   *spawn.Spawner // that started processes when this generation was announced
}

// cause is the reason to build a generation. A greater cause includes the smaller ones.
type cause int

const (
	nothing         cause = iota
	becauseOfAge          // because of age, wear, or the loss of a service
	becauseOfKeys         // a file of a key has changed
	becauseOfReload       // SIGHUP
)

// reload asks for a generation of the configuration as it is now.
func (m *monitor) reload() {
	if m.dispatcher != nil && m.audit != nil {
		go m.audit.Follow(m.dispatcher.logs(), true) // whether or not the reload succeeds
	}
	m.want(becauseOfReload)
}

// look asks for a generation if a key file has changed since the parent last
// tried to open the keys. It does nothing while a program may still be writing
// a changed file with token keys.
func (m *monitor) look() {
	if m.current != nil && keys.Stamp(m.config.Secrets) != m.tried && m.keys.IsAtRest(still) {
		m.want(becauseOfKeys)
	}
}

// want asks for a generation. The parent builds one at a time.
func (m *monitor) want(why cause) {
	m.wanted = max(m.wanted, why)
	if m.wanted == nothing || m.opening || m.next != nil || m.stopping != nil || m.dispatcher == nil || !m.dispatcher.briefed {
		return
	}
	m.last++
	g := &generation{id: m.last, why: m.wanted, config: m.config, keys: new(keys.Keys), strict: m.wanted == becauseOfReload || m.current == nil, begun: time.Now()}
	m.wanted, m.opening, m.lastOpened = nothing, true, g.begun
	before, again := m.keys, m.current != nil
	go func() { // files may be on a file system that hangs
		err := m.open(g, before, again)
		m.do(func() { m.opened(g, err) })
	}()
}

// open opens the keys of g. For a reload it reads the configuration again first.
func (m *monitor) open(g *generation, before *keys.Keys, again bool) (err error) {
	if g.why == becauseOfReload && again {
		notify.Reloading()
		if err := g.config.reread(m.who); err != nil {
			return err
		}
	}
	g.keys, err = keys.Open(g.config.keyOptions(m.who, m.https), before, g.strict)
	return err
}

// opened announces g to the dispatcher.
func (m *monitor) opened(g *generation, err error) {
	m.opening = false
	m.tried = keys.Stamp(g.config.Secrets)
	switch {
	case err != nil:
		m.rejected(g, err)
		return
	case m.stopping != nil || m.dispatcher == nil || !m.dispatcher.briefed:
		g.keys.Close(m.keys)
		m.wanted = max(m.wanted, g.why) // for the next dispatcher
		return
	}
	m.tried = g.keys.Stamp
	m.next, m.generations[g.id], g.home = g, g, m.spawner
	m.send(&ipc.Build{ID: g.id, Keeper: g.keys.NeedKeeper() && m.client == nil, Audit: m.audit != nil, Resolver: true})
	for ranges := range slices.Chunk(g.config.Ranges, ipc.SubuidsAtOnce) {
		m.send(&ipc.SubuidRanges{PlanSubuids: ipc.PlanSubuids{Ranges: ranges}})
	}
	m.send(&ipc.GenerationSetup{Setup: g.config.Setup})
	if m.client != nil {
		m.send(m.client, m.clientFD...)
	}
}

// judgeKeys handles the keeper's verdict on the keys of the generation that is
// being built. The verdict comes from the dispatcher, and judgeKeys answers the
// dispatcher. If the keeper has accepted the keys, the answer contains the
// public keys for workers. Otherwise it reports whether the generation
// continues with the previous keys.
func (m *monitor) judgeKeys(v *ipc.Verdict) error {
	g := m.next
	if g == nil {
		return fmt.Errorf("sent Verdict while no generation is being built")
	}
	if v.OK {
		g.keys.Announce(m.keys)
		public, fds := g.keys.ForWorker()
		public.Followed = public.Followed && m.client == nil // a run for one client follows no file
		m.send(public, fds...)
		return nil
	}
	why := errs.New(errs.Invalid, "%s", printable.Text(v.Reason))
	m.send(ipc.Judged(g.keys.Refused(v.Token, why, m.keys, g.strict)))
	return nil
}

// decided handles the dispatcher's report on the generation that was built. It
// puts that generation in force, or keeps the previous one.
func (m *monitor) decided(o *ipc.Outcome) error {
	g := m.next
	if g == nil || g.id != o.ID {
		return fmt.Errorf("sent Outcome for generation %d, which is not being built", o.ID)
	}
	m.next = nil
	if !o.OK {
		err := o.Err()
		if errs.KindOf(err) == errs.Denied && m.keys.RefuseSet(g.keys) {
			err = errs.Wrap(err, errs.Denied, "key set %s", m.config.Secrets.Tokens.JWKS)
		}
		m.rejected(g, err)
		return nil
	}
	m.keys.Close(g.keys)
	again, serving := m.current != nil, m.arrivals.Load() != nil
	m.config, m.current, m.keys, m.tried = g.config, g, g.keys, g.keys.Stamp
	took := time.Since(g.begun).Round(time.Millisecond)
	switch {
	case m.ready != nil:
		m.ready()
	case !serving:
		m.accept()
	}
	switch {
	case again && g.why == becauseOfReload:
		m.config.Level.Set(slog.Level(m.config.LogLevel))
		m.config.Log.Info("configuration reloaded", "took", took)
		notify.Ready()
	case serving:
		m.config.Log.Info("workers and services replaced", "took", took)
	}
	m.want(nothing) // builds the generation that was requested meanwhile
	return nil
}

// rejected logs why g is not in force. If no generation is in force, it ends the run.
func (m *monitor) rejected(g *generation, err error) {
	log := m.config.Log
	if m.current == nil {
		m.end(err)
		return
	}
	g.keys.Close(m.keys)
	attrs := errs.LogAttrs(errs.HintOf(err), "error", err)
	if g.why == becauseOfReload {
		log.Error("new configuration rejected; keeping the old one", attrs...)
		m.tried = m.keys.Stamp // the next look tries files that have changed
		notify.Ready()
	} else if m.dispatcher != nil { // without a dispatcher, the next one builds a generation
		log.Error("new workers cannot serve; keeping the old ones", attrs...)
		if kind := errs.KindOf(err); kind == errs.Internal || kind == errs.Unavailable { // the files may be all right
			m.tried = ""
		}
	}
	m.want(nothing) // builds the generation that was requested meanwhile
}
