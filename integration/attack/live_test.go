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

	"schedrestd/integration/harness"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// badCredential is a credential that resembles a good one, for the same user.
type badCredential struct {
	name  string
	token string
	actAs string // value of X-SCHED-USER-NAME; "": none
}

// imitations returns credentials that resemble the good token for alg. An
// attacker who has seen the whole good token, but does not know the key, could
// make most of them. One of them contains an expired token.
func (s *attackLab) imitations(alg string) []badCredential {
	good := s.validToken(alg)
	parts := strings.Split(good, ".")
	list := []badCredential{
		{"expired", s.forger.token(alg, plainHeader, `{"iat":$iat,"exp":$past,"sun":"$user"}`, s.ownSigner(alg)), ""},
		{"forged", s.forger.token("RS256", plainHeader, plainClaims, s.pkcs1(crypto.SHA256, s.attackerKey)), ""},
		{"forged with another secret", s.forger.token("HS256", plainHeader, plainClaims, mac(crypto.SHA256, s.secret[1:])), ""},
		{"with the payload prolonged", parts[0] + "." + base64url([]byte(s.fill(strings.Replace(plainClaims, "$exp", "4102444800", 1), alg))) + "." + parts[2], ""},
		{"acting as an unknown user", good, "no-such-user"},
	}
	for _, i := range []int{0, len(parts[2]) / 2, len(parts[2]) - 2, len(parts[2]) - 1} {
		list = append(list, badCredential{fmt.Sprintf("with letter %d of the signature changed", i), parts[0] + "." + parts[1] + "." + flipBit(parts[2], i), ""})
	}
	return list
}

func (b badCredential) headers() string {
	if b.actAs == "" {
		return "X-SCHED-USER-TOKEN: " + b.token
	}
	return "X-SCHED-USER-TOKEN: " + b.token + "\r\nX-SCHED-USER-NAME: " + b.actAs
}

// attackBesideTheUser checks that attackers can't impersonate a user while
// the user is being served, or shortly afterwards. The attacks must not affect
// the user.
func (s *attackLab) attackBesideTheUser(t *testing.T) {
	for _, alg := range strings.Fields(s.algs) {
		t.Run(alg+" daemons", func(t *testing.T) { s.attackDuringRPC(t, alg) })
		for _, g := range s.gateways {
			t.Run(alg+" "+g.name, func(t *testing.T) {
				s.attackDuringRequests(t, g, alg)
				s.attackAfterVerification(t, g, alg)
				s.attackConcurrently(t, g, alg)
			})
		}
	}
}

// attackDuringRequests attacks while the user has a persistent connection and a
// submission in progress.
func (s *attackLab) attackDuringRequests(t *testing.T, g *targetGateway, alg string) {
	userHeader := "X-SCHED-USER-TOKEN: " + s.validToken(alg)
	keptOpen := &targetGateway{name: g.name, client: &rawClient{address: g.client.address}, refusals: g.refusals}
	defer keptOpen.client.close()
	keptOpen.expect(t, diagRequest, userHeader, http.StatusOK)
	conn, in := s.beginSubmission(t, g, userHeader)
	half := len(s.body) / 2
	_, err := io.WriteString(conn, s.body[:half])
	harness.Must(t, err)
	for _, b := range s.imitations(alg) {
		for _, r := range s.requests(http.StatusUnauthorized) {
			g.expect(t, r, b.headers(), http.StatusUnauthorized)
			keptOpen.expect(t, r, b.headers(), http.StatusUnauthorized) // even on the user's own connection, each request is authenticated separately
		}
		keptOpen.expect(t, diagRequest, userHeader, http.StatusOK)
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
func (s *attackLab) beginSubmission(t *testing.T, g *targetGateway, headers string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", g.client.address)
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

// attackAfterVerification attacks a gateway that has cached a daemon's
// verification of a token. The cached result must apply only to requests with
// exactly this token and exactly the same user name.
func (s *attackLab) attackAfterVerification(t *testing.T, g *targetGateway, alg string) {
	users := []string{s.user}
	if u := harness.OrdinaryUser(t); u.Name != s.user {
		users = append(users, u.Name) // a user who is no administrator
	}
	for _, user := range users {
		userForger := *s.forger
		userForger.user = user
		token := userForger.validToken(alg)
		userHeader := "X-SCHED-USER-TOKEN: " + token
		imitations := (&attackLab{Lab: s.Lab, forger: &userForger}).imitations(alg)
		if user != s.user {
			imitations = append(imitations, badCredential{"acting as the administrator", token, s.user}, badCredential{"acting as another", token, "nobody"})
		}
		for _, b := range imitations {
			for _, r := range []request{pingRequest, diagRequest} {
				g.expect(t, r, userHeader, http.StatusOK)
				g.expect(t, r, b.headers(), http.StatusUnauthorized)
				g.expect(t, r, userHeader+"\r\nX-SCHED-USER-NAME: "+user, http.StatusOK)
				g.expect(t, r, b.headers(), http.StatusUnauthorized)
			}
			if t.Failed() {
				t.Fatalf("%s, %s", user, b.name)
			}
		}
		if user == s.user && len(users) > 1 { // s.user may act as the other user, but the other user must still not act as s.user
			g.expect(t, pingRequest, userHeader+"\r\nX-SCHED-USER-NAME: "+users[1], http.StatusOK)
		}
	}
}

// attackConcurrently sends the user's requests and attackers' requests at the
// same time.
func (s *attackLab) attackConcurrently(t *testing.T, g *targetGateway, alg string) {
	userHeader := "X-SCHED-USER-TOKEN: " + s.validToken(alg)
	var wg sync.WaitGroup
	for _, b := range s.imitations(alg) {
		wg.Go(func() {
			l := &rawClient{address: g.client.address}
			defer l.close()
			for range 5 {
				for headers, want := range map[string]int{userHeader: http.StatusOK, b.headers(): http.StatusUnauthorized} {
					if a, err := l.send(diagRequest, headers); err != nil || a.Status != want {
						t.Errorf("%s beside a good one: status %d, want %d; %v", b.name, a.Status, want, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// attackDuringRPC attacks while the user has a request in progress at the
// controller and a session with the accounting daemon.
func (s *attackLab) attackDuringRPC(t *testing.T, alg string) {
	credential := &message.Credential{Plugin: message.PluginJWT, Token: s.validToken(alg)}
	ping, err := message.Encode(codec.Newest, 0, message.RequestPing, credential, message.Empty{})
	harness.Must(t, err)
	pingConn := s.dial(t, s.Ctld.Address)
	_, err = pingConn.Write(ping[:len(ping)-20])
	harness.Must(t, err)

	opening, err := message.EncodeOpening(codec.Newest, message.FixedCredential(credential), &message.PersistInit{Version: codec.Newest, ClusterName: "demo", PersistType: message.PersistToAccounting})
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
		for name, err := range s.callDaemons(t.Context(), model.Credential{Token: b.token, ActAs: b.actAs}) {
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
	_, err = pingConn.Write(ping[len(ping)-20:])
	harness.Must(t, err)
	answer, err := wire.Read(pingConn, 1<<20)
	harness.Must(t, err)
	frame, err := message.ParseFrame(answer)
	harness.Must(t, err)
	var rc message.RC
	if err := frame.Decode(&rc); err != nil || rc.Code != 0 {
		t.Errorf("the request in progress: %d, %v", rc.Code, err)
	}
}

func (s *attackLab) dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	harness.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	harness.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return conn
}
