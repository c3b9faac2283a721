package server

import (
	"cmp"
	"encoding/binary"
	"errors"
	"log/slog"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// servePersistent serves a persistent connection. The argument opening is the
// first message without its type: a header, a credential and a PersistInit. The
// credential applies to the whole connection. The server verifies it again for
// each request, because by then the token may have expired, the key may have
// been replaced, or the token may stand for another user.
func (c *conn) servePersistent(opening []byte) error {
	s, init, err := c.openSession(opening)
	if err != nil {
		number, text := fault.Number(err)
		c.logLimited(slog.LevelInfo, "connection refused", "error", err)
		return s.sendRC(uint16(s.version)<<8, number, text)
	}
	if err := s.sendRC(uint16(init.Version)<<8, 0, c.server.Greeting); err != nil {
		return err
	}
	defer func() {
		if s.handlerState.Close != nil {
			s.handlerState.Close()
		}
	}()
	for c.endRequest() {
		if err := s.serveRequest(); err != nil {
			return err
		}
	}
	return nil
}

// A session is the state of a persistent connection.
type session struct {
	*conn
	version      codec.Version
	credential   message.Credential
	identity     Identity
	cluster      string
	handlerState Session
}

// openSession verifies the first message of a connection. It returns a session
// even when it returns an error, so that the caller can send the error to the
// peer.
func (c *conn) openSession(opening []byte) (*session, message.PersistInit, error) {
	s := &session{conn: c, version: c.server.newest()}
	var init message.PersistInit
	f, err := message.ParseFrame(opening)
	v := f.Header.Version
	if errors.Is(err, message.ErrVersion) || err == nil && (v < c.server.oldest() || v > c.server.newest()) {
		return s, init, fault.Of(fault.ProtocolVersion, "")
	}
	if err != nil {
		return s, init, fault.Of(fault.IncompletePacket, "")
	}
	s.version, s.credential = v, f.Credential
	if s.identity, err = c.identify(f.Credential); err != nil {
		return s, init, err
	}
	if err := c.server.assignUser(c, s.identity); err != nil {
		return s, init, err
	}
	if err := f.Decode(&init); err != nil {
		return s, init, fault.Of(fault.IncompletePacket, "")
	}
	// From here on, the version in the body applies. If it is newer than our
	// newest version, our newest version applies instead, as in slurmdbd.
	s.version = min(init.Version, c.server.newest())
	if s.version < c.server.oldest() {
		return s, init, fault.Of(fault.ProtocolVersion, "")
	}
	s.cluster = init.ClusterName
	return s, init, nil
}

// serveRequest reads one request and answers it.
func (s *session) serveRequest() error {
	if !s.setReadTimeout(cmp.Or(s.server.IdleTimeout, defaultIdleTimeout)) {
		return errClosed
	}
	n, err := wire.Length(s, cmp.Or(s.server.MaxRequest, defaultMaxRequest))
	if err != nil {
		return err
	}
	if !s.setReadTimeout(cmp.Or(s.server.BodyTimeout, defaultBodyTimeout)) {
		return errClosed
	}
	if n < 2 {
		return codec.ErrShort
	}
	b, err := wire.Fill(s, nil, 2)
	if err != nil {
		return err
	}
	t := message.Type(binary.BigEndian.Uint16(b))
	release, err := s.admit(t, n-2)
	if err != nil {
		number, text := fault.Number(err)
		defer s.linger(n - 2)
		return errors.Join(err, s.sendRC(uint16(t), number, text))
	}
	defer release()
	if b, err = wire.Fill(s, b, n); err != nil {
		return err
	}
	if !s.beginRequest() {
		return errClosed
	}
	r := &Request{Type: t, Version: s.version, Identity: s.identity,
		Cluster: s.cluster, Peer: s.peerName(), Session: &s.handlerState, server: s.server, body: b[2:],
		front: func(t message.Type, n int) ([]byte, error) { return message.PersistentFront(t, n), nil }}
	ctx, stop := s.watchHangup(s.server.ctx)
	kind, answer, err := s.handle(ctx, s.server.Persistent, r)
	stop()
	if isUnknown(err) {
		return err
	}
	if err != nil {
		number, text := fault.Number(err)
		if number == fault.Internal {
			s.server.log().Error("request failed", "peer", r.Peer, "request", r.Type, "error", err)
		}
		return s.sendRC(uint16(r.Type), number, text)
	}
	return s.send(kind, answer)
}

// admit verifies the credential again. It then reserves memory for a request of
// type t with n bytes. The caller must call release.
func (s *session) admit(t message.Type, n int) (release func(), err error) {
	id, err := s.identify(s.credential)
	if err != nil {
		return nil, err
	}
	if !id.equal(s.identity) {
		return nil, refused(errors.New("the credential now stands for another user"))
	}
	return s.reserveMemory(t, s.identity, n)
}

// sendRC sends a short answer: an error number, which is 0 for success, and a
// text. For info, see message.PersistRC.
func (s *session) sendRC(info uint16, number uint32, text string) error {
	return s.send(message.AccountingRC, &message.PersistRC{Comment: text, Code: number, Info: info})
}

func (s *session) send(t message.Type, body message.Body) error {
	if long, ok := body.(*spool); ok {
		return s.sendSpool(long)
	}
	b, err := message.EncodePersistent(s.version, t, body)
	if err != nil {
		return err
	}
	return s.write(b)
}
