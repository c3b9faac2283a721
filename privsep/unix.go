package privsep

import (
	"io/fs"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/socket"
)

// listenUnix makes the UNIX socket of e and gives it to who.
func listenUnix(e ipc.Listen, c Config, who service) ([]*listener, error) {
	if c.Switches.BecomeUser { // its users come from outside, and root listens
		who.UID, who.GID = 0, 0
	}
	gid := who.GID
	if c.SocketGroup != nil {
		gid = *c.SocketGroup
	}
	s, err := socket.Open(e.Path, socket.Options{
		Mode:    unixMode(c),
		Owner:   &socket.Owner{UID: who.UID, GID: gid},
		Private: become.PrivateGroup,
	})
	if err != nil {
		return nil, err
	}
	l, err := newListener(ipc.Unix, e.Text, s.File)
	if err != nil {
		s.Remove()
		s.File.Close()
		return nil, err
	}
	l.remove = s.Remove
	return []*listener{l}, nil
}

// unixMode is who may connect: with tokens everybody, since the token decides; with become_user
// everybody, who is then served as himself; with rest_auth/local alone only the serving user, who is the only one it lets in.
func unixMode(c Config) fs.FileMode {
	if c.SocketMode != 0 {
		return c.SocketMode
	}
	if c.Setup.JWT || c.Switches.BecomeUser {
		return 0o666
	}
	return 0o600
}
