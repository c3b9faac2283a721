package rest

import (
	"strconv"

	"schedrestd/api/schema"
)

// shared returns a Stream like list whose first element is passed on only if the
// rendering of the list does not exist yet (rendering.go).
func shared[T any](c *Call, list schema.Stream[T]) schema.Stream[T] {
	return func(each func(*T) error) error {
		asked := false
		err := list(func(item *T) error {
			if !asked {
				asked = true
				if err := c.out.share(); err != nil {
					return err
				}
			}
			return each(item)
		})
		if err == errShared {
			return nil
		}
		return err
	}
}

// share looks for the rendering of the answer's records. If it exists, share
// returns errShared. If another request is creating it, share waits. If there is
// none, the answer creates it.
func (s *sink) share() error {
	c := s.c
	key, ok := c.renderingKey()
	if !ok || !s.tagged || c.needsLength() || c.server.renderings.limit == 0 {
		return nil
	}
	for {
		r, build := c.server.renderings.get(key, c.coding.name, c.client.User(), c.Reserve)
		if build {
			s.shared = r
			s.build = newBuilder(c.server.renderings, r, c.w, func() error { s.sendHeader(-1, r.coding != ""); return nil })
			return nil
		}
		err := r.wait(c.ctx)
		if err == nil && r.whole {
			s.shared = r
			return errShared
		}
		c.server.renderings.release(r)
		if err != nil || r.alone {
			return err
		}
	}
}

// Mark ends the records of the answer, of which the last part is rest. If the
// records are not shared, it does nothing and returns false.
func (s *sink) Mark(rest []byte) bool {
	if s.shared == nil || s.build != nil && s.build.over {
		return false
	}
	if s.build != nil {
		if s.shared.plain == 0 { // so short that a rendering is not worth it
			s.shared.alone = true
			s.releaseShared()
			return false
		}
		_, err := s.build.Write(rest)
		if err == nil {
			err = s.build.finish()
		}
		if err != nil {
			s.c.abort(err)
		}
		if s.build.over {
			return true
		}
	}
	s.marked = true
	return true
}

// finishShared sends the shared records, followed by the end of the body.
func (s *sink) finishShared() error {
	c := s.c
	if c.matchTag(s.shared.tag) {
		return c.sendUnchanged()
	}
	end := s.shared.ending(s.own)
	c.SetContentType(c.media)
	h := c.Header()
	if s.shared.coding != "" {
		h.Set("Content-Encoding", s.shared.coding)
	}
	h.Set("Content-Length", strconv.Itoa(s.shared.size+len(end)))
	c.w.WriteHeader(s.status)
	for _, piece := range s.shared.pieces {
		if _, err := c.w.Write(piece); err != nil {
			return err
		}
	}
	_, err := c.w.Write(end)
	return err
}

// releaseShared ends the use of the shared records. If the answer was creating
// them and has failed, others do it themselves.
func (s *sink) releaseShared() {
	if s.shared == nil {
		return
	}
	if s.build != nil {
		if !s.shared.whole && !s.build.over {
			s.c.server.renderings.publish(s.shared)
			s.c.server.renderings.discard(s.shared)
		}
		s.build.close()
	}
	s.c.server.renderings.release(s.shared)
	s.shared, s.build = nil, nil
}
