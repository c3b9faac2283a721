package attack

import (
	"bufio"
	"crypto"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/errs"
	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// bad is a credential that resembles a good one, for the same user.
type bad struct {
	name  string
	token string
	as    string // value of X-SCHED-USER-NAME; "": none
}

// imitations returns credentials that resemble the good token of alg: those of
// an attacker who saw the whole token but not the key, and expired ones.
func (s *siege) imitations(alg string) []bad {
	good := s.good(alg)
	parts := strings.Split(good, ".")
	list := []bad{
		{"expired", s.forger.token(alg, plainHead, `{"iat":$iat,"exp":$past,"sun":"$user"}`, s.own(alg)), ""},
		{"forged", s.forger.token("RS256", plainHead, plainClaims, s.pkcs1(crypto.SHA256, s.stranger)), ""},
		{"forged with another secret", s.forger.token("HS256", plainHead, plainClaims, mac(crypto.SHA256, s.secret[1:])), ""},
		{"with the payload prolonged", parts[0] + "." + base64url([]byte(s.fill(strings.Replace(plainClaims, "$exp", "4102444800", 1), alg))) + "." + parts[2], ""},
		{"acting as an unknown user", good, "no-such-user"},
	}
	for _, i := range []int{0, len(parts[2]) / 2, len(parts[2]) - 2, len(parts[2]) - 1} {
		list = append(list, bad{fmt.Sprintf("with letter %d of the signature changed", i), parts[0] + "." + parts[1] + "." + changed(parts[2], i), ""})
	}
	return list
}

func (b bad) headers() string {
	if b.as == "" {
		return "X-SCHED-USER-TOKEN: " + b.token
	}
	return "X-SCHED-USER-TOKEN: " + b.token + "\r\nX-SCHED-USER-NAME: " + b.as
}

// TestAttacksBesideTheUser checks that attackers can't use a user's name,
// either while that user is served or shortly afterwards. Their attempts must
// not affect the user.
func TestAttacksBesideTheUser(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"jwt_key jwks", "jwks"} {
		t.Run("daemons with "+keys, func(t *testing.T) {
			s := besiege(t, keys)
			before := s.workersOf()
			for _, alg := range strings.Fields(s.algs) {
				t.Run(alg+" daemons", func(t *testing.T) { s.besideRPC(t, alg) })
				for _, g := range s.gates {
					t.Run(alg+" "+g.name, func(t *testing.T) {
						s.besideRequests(t, g, alg)
						s.afterVerification(t, g, alg)
						s.amongOthers(t, g, alg)
					})
				}
			}
			s.unharmed(t, before)
		})
	}
}

// besideRequests attacks while the user has a submission in progress, and a
// persistent connection.
func (s *siege) besideRequests(t *testing.T, g *besieged, alg string) {
	mine := "X-SCHED-USER-TOKEN: " + s.good(alg)
	stays := &besieged{name: g.name, line: &line{address: g.line.address}, refusals: g.refusals}
	defer stays.line.close()
	stays.try(t, diagRequest, mine, http.StatusOK)
	conn, in := s.beginSubmission(t, g, mine)
	half := len(s.body) / 2
	_, err := io.WriteString(conn, s.body[:half])
	harness.Must(t, err)
	for _, b := range s.imitations(alg) {
		for _, r := range s.requests(http.StatusUnauthorized) {
			g.try(t, r, b.headers(), http.StatusUnauthorized)
			stays.try(t, r, b.headers(), http.StatusUnauthorized) // even on the user's own connection, each request is authenticated separately
		}
		stays.try(t, diagRequest, mine, http.StatusOK)
	}
	_, err = io.WriteString(conn, s.body[half:])
	harness.Must(t, err)
	resp, err := http.ReadResponse(in, nil)
	harness.Must(t, err)
	text, err := io.ReadAll(resp.Body)
	harness.Must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the submission in progress: %s: %s", resp.Status, text)
	}
}

// beginSubmission sends a submission without its body.
func (s *siege) beginSubmission(t *testing.T, g *besieged, headers string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", g.line.address)
	harness.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	harness.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	in := bufio.NewReader(conn)
	fmt.Fprintf(conn, "POST /sched/%s/job/submit HTTP/1.1\r\nHost: lab\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n\r\n", harness.Version, len(s.body), headers)
	first, err := in.ReadString('\n') // the user is authenticated, and the gateway asks for the body
	harness.Must(t, err)
	if !strings.Contains(first, " 100 ") {
		t.Fatalf("%q", first)
	}
	_, err = in.ReadString('\n')
	harness.Must(t, err)
	return conn, in
}

// afterVerification checks a gateway that has cached a daemon's verification of
// a token. The cached result must count only for exactly that token and that
// user name.
func (s *siege) afterVerification(t *testing.T, g *besieged, alg string) {
	all := []string{s.user}
	if u := harness.SomeUser(t); u.Name != s.user {
		all = append(all, u.Name) // a user who is no administrator
	}
	for _, user := range all {
		theirs := *s.forger
		theirs.user = user
		token := theirs.good(alg)
		mine := "X-SCHED-USER-TOKEN: " + token
		imitations := (&siege{Lab: s.Lab, forger: &theirs}).imitations(alg)
		if user != s.user {
			imitations = append(imitations, bad{"acting as the administrator", token, s.user}, bad{"acting as another", token, "nobody"})
		}
		for _, b := range imitations {
			for _, r := range []request{pingRequest, diagRequest} {
				g.try(t, r, mine, http.StatusOK)
				g.try(t, r, b.headers(), http.StatusUnauthorized)
				g.try(t, r, mine+"\r\nX-SCHED-USER-NAME: "+user, http.StatusOK)
				g.try(t, r, b.headers(), http.StatusUnauthorized)
			}
			if t.Failed() {
				t.Fatalf("%s, %s", user, b.name)
			}
		}
		if user == s.user && len(all) > 1 { // this user may act as the other, but the other must still not act as this user
			g.try(t, pingRequest, mine+"\r\nX-SCHED-USER-NAME: "+all[1], http.StatusOK)
		}
	}
}

// amongOthers sends requests of the user and of attackers concurrently.
func (s *siege) amongOthers(t *testing.T, g *besieged, alg string) {
	mine := "X-SCHED-USER-TOKEN: " + s.good(alg)
	var all sync.WaitGroup
	for _, b := range s.imitations(alg) {
		all.Go(func() {
			l := &line{address: g.line.address}
			defer l.close()
			for range 5 {
				for headers, want := range map[string]int{mine: http.StatusOK, b.headers(): http.StatusUnauthorized} {
					if a, err := l.ask(diagRequest, headers); err != nil || a.Status != want {
						t.Errorf("%s beside a good one: status %d, want %d; %v", b.name, a.Status, want, err)
					}
				}
			}
		})
	}
	all.Wait()
}

// besideRPC attacks while the user has a request in progress at the controller,
// and a session with the accounting daemon.
func (s *siege) besideRPC(t *testing.T, alg string) {
	mine := &message.Credential{Plugin: message.PluginJWT, Token: s.good(alg)}
	ping, err := message.Encode(codec.Newest, 0, message.RequestPing, mine, message.Empty{})
	harness.Must(t, err)
	asks := s.dial(t, s.Ctld.Address)
	_, err = asks.Write(ping[:len(ping)-20])
	harness.Must(t, err)

	opening, err := message.EncodeOpening(codec.Newest, message.Sealed(mine), &message.PersistInit{Version: codec.Newest, ClusterName: "demo", PersistType: message.PersistToAccounting})
	harness.Must(t, err)
	session := s.dial(t, s.DBD.Address)
	_, err = session.Write(opening)
	harness.Must(t, err)
	if answer, err := wire.Read(session, 1<<20); err != nil || binary.BigEndian.Uint16(answer) != uint16(message.AccountingRC) {
		t.Fatalf("session: % x, %v", answer, err)
	}
	stats, err := message.EncodePersistent(codec.Newest, message.AccountingGetStats, message.Empty{})
	harness.Must(t, err)

	for _, b := range s.imitations(alg) {
		for name, err := range s.byRPC(t.Context(), model.Credential{Token: b.token, ActAs: b.as}) {
			if errs.KindOf(err) != errs.Unauthenticated {
				t.Errorf("%s: %s says %v", b.name, name, err)
			}
		}
		_, err = session.Write(stats)
		harness.Must(t, err)
		if answer, err := wire.Read(session, 1<<20); err != nil || binary.BigEndian.Uint16(answer) != uint16(message.AccountingGotStats) {
			t.Fatalf("%s: the session that was open: % x, %v", b.name, answer[:min(len(answer), 40)], err)
		}
	}
	_, err = asks.Write(ping[len(ping)-20:])
	harness.Must(t, err)
	answer, err := wire.Read(asks, 1<<20)
	harness.Must(t, err)
	frame, err := message.ParseFrame(answer)
	harness.Must(t, err)
	var rc message.RC
	if err := frame.Decode(&rc); err != nil || rc.Code != 0 {
		t.Errorf("the request in progress: %d, %v", rc.Code, err)
	}
}

func (s *siege) dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	harness.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	harness.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn
}
