package privsep

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/notify"
	"schedrestd/internal/printable"
	"schedrestd/ipc"
	"schedrestd/privsep/keys"
	"schedrestd/privsep/spawn"
)

// generation is a configuration with its open keys. The dispatcher starts a set
// of workers and services for each generation.
type generation struct {
	id              uint32
	cause           generationCause
	config          Config
	keys            *keys.Keys
	requireNewCerts bool // reject the generation if its new certificates are unusable
	startedAt       time.Time
	resolver        *ipc.Channel   // to its resolver; nil: none was started
	vouches         *ipc.Channel   // on which its keeper vouches for users; nil: it has no keeper
	spawner         *spawn.Spawner // the monitor's confinedSpawner when this generation was announced
}

// config returns the configuration in force. Before the first generation is in
// force, that is the configuration with which this generation is built.
func (m *monitor) config() *Config { return &m.current.Load().config }

// keys returns the keys of the generation in force.
func (m *monitor) keys() *keys.Keys { return m.current.Load().keys }

// hasServed reports whether a generation is in force.
func (m *monitor) hasServed() bool { return m.current.Load().id != 0 }

// generationCause is the reason for a new generation of workers and services.
// The causes are in ascending order: a generation with a greater cause also
// does everything that the smaller causes require.
type generationCause int

const (
	causeNone   generationCause = iota
	causeAge                    // age, many served connections, or the loss of a service
	causeKeys                   // a file of a key has changed
	causeReload                 // SIGHUP
)

// reload requests a new generation of workers and services, for which the
// configuration is read again.
func (m *monitor) reload() {
	if m.dispatcher != nil && m.auditLog != nil {
		go m.auditLog.Reopen(m.dispatcher.listAuditors(), true) // whether or not the reload succeeds
	}
	m.requestGeneration(causeReload)
}

// checkKeyFiles requests a new generation of workers and services if a key file
// has changed since the parent last tried to use the keys. It does nothing
// while a generation is being built, or while a program may still be writing to
// a file with token keys.
func (m *monitor) checkKeyFiles() {
	if m.hasServed() && !m.openingGeneration && m.nextGeneration == nil && keys.Stamp(m.config().Secrets) != m.lastKeyStamp && m.keys().IsSettled(m.config().Limits.Settle) {
		m.requestGeneration(causeKeys)
	}
}

// requestGeneration starts to build a new generation of workers and services.
// If another generation is being built, or if no dispatcher is ready, it only
// records the cause, and the new generation is built later.
func (m *monitor) requestGeneration(cause generationCause) {
	m.pendingCause = max(m.pendingCause, cause)
	if m.pendingCause == causeNone || m.openingGeneration || m.nextGeneration != nil || m.stopSignal != nil || !m.dispatcher.isServing() {
		return
	}
	m.lastGenerationID++
	g := &generation{id: m.lastGenerationID, cause: m.pendingCause, config: *m.config(), keys: new(keys.Keys), requireNewCerts: m.pendingCause == causeReload || !m.hasServed(), startedAt: time.Now()}
	m.pendingCause, m.openingGeneration, m.lastOpenedAt = causeNone, true, g.startedAt
	previous := m.current.Load()
	go func() { // files may be on a file system that hangs
		err := m.openGeneration(g, previous)
		m.post(func() { m.announceGeneration(g, err) })
	}()
}

// openGeneration opens the keys of g. For a reload it first reads the
// configuration again.
func (m *monitor) openGeneration(g *generation, previous *generation) (err error) {
	if g.cause == causeReload && previous.id != 0 {
		notify.Reloading()
		if err := g.config.reread(m.service); err != nil {
			return err
		}
	}
	g.keys, err = keys.Open(g.config.keyOptions(m.service, m.servesHTTPS), previous.keys, g.requireNewCerts)
	return err
}

// announceGeneration sends g to the dispatcher, which starts the workers and
// services of g. If openGeneration returned the error err, announceGeneration
// rejects g instead.
func (m *monitor) announceGeneration(g *generation, err error) {
	m.openingGeneration = false
	m.lastKeyStamp = keys.Stamp(g.config.Secrets)
	switch {
	case err != nil:
		m.rejectGeneration(g, err)
		return
	case m.stopSignal != nil || !m.dispatcher.isServing():
		g.keys.Close(m.keys())
		m.pendingCause = max(m.pendingCause, g.cause) // for the next dispatcher
		return
	}
	m.lastKeyStamp = g.keys.Stamp
	m.nextGeneration, m.generations[g.id], g.spawner = g, g, m.confinedSpawner
	m.send(&ipc.BuildGeneration{ID: g.id, Keeper: g.keys.NeedsKeeper() && m.inetdClient == nil, Audit: m.auditLog != nil, Resolver: true})
	for ranges := range slices.Chunk(g.config.Ranges, ipc.SubuidBatchSize) {
		m.send(&ipc.SubuidRanges{PlanSubuids: ipc.PlanSubuids{Ranges: ranges}})
	}
	m.send(&ipc.GenerationSetup{Setup: g.config.Setup})
	if m.inetdClient != nil {
		m.send(m.inetdClient, m.inetdFDs...)
	}
}

// handleSecretKeysResult handles the keeper's verdict on the keys of the
// generation that is being built. The dispatcher passes on the verdict and gets
// an answer. If the keeper has accepted the keys, the answer contains the
// public keys for workers. Otherwise the answer reports whether the generation
// continues with the previous keys.
func (m *monitor) handleSecretKeysResult(v *ipc.SecretKeysResult) error {
	g := m.nextGeneration
	if g == nil {
		return fmt.Errorf("sent SecretKeysResult while no generation is being built")
	}
	if v.OK {
		g.keys.LogChanges(m.keys())
		public, fds := g.keys.WorkerMessage()
		public.Current = public.Current && m.inetdClient == nil // a gateway for one client does not check for a newer key set
		m.send(public, fds...)
		return nil
	}
	err := errs.New(errs.Invalid, "%s", printable.Text(v.Reason))
	m.send(&ipc.CheckResult{Result: ipc.ResultOf(g.keys.HandleRefusal(v.Token, err, m.keys(), g.requireNewCerts))})
	return nil
}

// handleGenerationResult handles the dispatcher's report about a new generation
// of workers and services. If the report is positive, handleGenerationResult
// makes the new generation the current one. Otherwise it keeps the current
// generation.
func (m *monitor) handleGenerationResult(o *ipc.GenerationResult) error {
	g := m.nextGeneration
	if g == nil || g.id != o.ID {
		return fmt.Errorf("sent GenerationResult for generation %d, which is not being built", o.ID)
	}
	m.nextGeneration = nil
	previous := m.current.Load()
	if err := o.Err(); err != nil {
		if errs.KindOf(err) == errs.Denied && previous.keys.RefuseKeySet(g.keys) {
			err = errs.Wrap(err, errs.Denied, "key set %s", m.config().Secrets.Tokens.JWKS)
		}
		m.rejectGeneration(g, err)
		return nil
	}
	previous.keys.Close(g.keys)
	serving := m.arrivalChannel.Load() != nil
	m.current.Store(g)
	took := time.Since(g.startedAt).Round(time.Millisecond)
	switch {
	case m.onReady != nil:
		m.onReady()
	case !serving:
		m.startAccepting()
	}
	switch {
	case previous.id != 0 && g.cause == causeReload:
		m.config().Level.Set(slog.Level(m.config().LogLevel))
		m.config().Log.Info("configuration reloaded", "took", took)
		m.send(&ipc.ReloadResult{})
		notify.Ready("")
	case serving:
		m.config().Log.Info("workers and services replaced", "took", took)
	}
	m.requestGeneration(causeNone) // builds the generation that was requested meanwhile
	return nil
}

// rejectGeneration keeps the current generation, and logs why g does not
// replace it. If there is no current generation, rejectGeneration ends the run
// with err.
func (m *monitor) rejectGeneration(g *generation, err error) {
	log := m.config().Log
	if !m.hasServed() {
		m.endRun(err)
		return
	}
	g.keys.Close(m.keys())
	attrs := errs.LogAttrs(errs.HintOf(err), "error", err)
	if g.cause == causeReload {
		log.Error("new configuration rejected; keeping the old one", attrs...)
		m.lastKeyStamp = m.keys().Stamp // so that the next check tries changed files again
		m.send(&ipc.ReloadResult{Rejected: true})
		notify.Ready("reload failed, old configuration kept: " + printable.Text(err.Error()))
	} else if m.dispatcher != nil { // if there is no dispatcher, the next one builds a generation
		log.Error("new workers cannot serve; keeping the old ones", attrs...)
		if kind := errs.KindOf(err); kind == errs.Internal || kind == errs.Unavailable { // the files may be valid
			m.lastKeyStamp = ""
		}
	}
	m.requestGeneration(causeNone) // builds the generation that was requested meanwhile
}
