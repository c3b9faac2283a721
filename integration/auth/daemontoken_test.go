package auth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// heldJob returns the description of a job. If script is "", the job is held,
// and waits until it is cancelled. Otherwise it runs script.
func (d *daemons) heldJob(script string) *model.JobDesc {
	desc := &model.JobDesc{Name: "held", Script: "#!/bin/sh\n" + script + "\n", WorkDir: model.Text(d.Work),
		Environment: []string{"PATH=/usr/bin:/bin"}, Priority: model.Some[uint32](0)}
	if script != "" {
		desc.Priority = model.Opt[uint32]{}
	}
	return desc
}

// errorNumber returns Slurm's error number in err.
func errorNumber(err error) int {
	if e, ok := err.(*errs.Error); ok {
		return e.Number
	}
	return 0
}

// TestSchedctlByBothWays checks that each command has the same effect over the
// controller's socket, where the kernel identifies the user, and over TCP,
// where a token names the user.
func TestSchedctlByBothWays(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	d.Ctld.Args, d.DBD.Args = append(d.Ctld.Args, "-v"), append(d.DBD.Args, "-v")
	d.start()
	u := d.self()
	if os.Geteuid() == 0 {
		u, _ = harness.TwoUsers(t)
	}
	tokenOutput := regexp.MustCompile(`^SCHED_JWT=[-A-Za-z0-9_]+\.[-A-Za-z0-9_]+\.[-A-Za-z0-9_]+\n$`)
	out, errOut, status := d.run(u, nil, "token", "lifespan=7200") // a long lifespan, because tokens that are requested with this token can't outlive it
	if status != 0 || errOut != "" || !tokenOutput.MatchString(out) {
		t.Fatalf("token: status %d, stdout %q, stderr %q", status, out, errOut)
	}
	tokens := []string{strings.TrimSpace(strings.TrimPrefix(out, "SCHED_JWT="))}
	for _, method := range []struct {
		name string
		env  []string
	}{
		{"the kernel's word", nil},
		{"a token", []string{"SCHED_JWT=" + tokens[0]}},
		{"a token in the other spelling", []string{"SLURM_JWT=" + tokens[0]}},
		{"a token of another tool", []string{"SCHED_JWT=" + d.hs256().token(u.Name, time.Hour)}},
	} {
		t.Run(method.name, func(t *testing.T) {
			// Give schedctl a configuration with an unusable port or socket
			// path, so that it can reach the controller only by the method
			// under test.
			port, socket := fmt.Sprintf("SchedctldPort=%d", d.Controller), "socket="+d.Socket()
			from, to := port, "SchedctldPort=1"
			if method.env != nil {
				from, to = socket, "socket=/nowhere"
			}
			conf, err := os.ReadFile(d.Conf())
			harness.Must(t, err)
			harness.Must(t, os.WriteFile(d.conf, []byte(strings.Replace(string(conf), from, to, 1)), 0o644))
			job, err := d.controller("tcp").Submit(t.Context(), tokenCredential(tokens[0]), d.heldJob(""))
			harness.Must(t, err)
			id := fmt.Sprint(job.StepID.JobID)
			for _, tt := range []struct {
				args string
				want string // regular expression for the output
			}{
				{"ping", `^` + d.Node + ` primary UP \d+ us from this machine\n$`},
				{"show node", `(?m)^` + d.Node + ` +IDLE `},
				{"show node " + d.Node, `(?m)^name=` + d.Node + `$`},
				{"show job", `(?m)^` + id + ` +held +` + u.Name + ` +PENDING `},
				{"show job " + id, `(?m)^user_name=` + u.Name + `$`},
				{"token", tokenOutput.String()},
				{"token username=" + u.Name + " lifespan=60", tokenOutput.String()},
				{"cancel " + id, `^1 job cancelled\n$`},
				{"show job " + id, `(?m)^job_state=CANCELLED$`},
			} {
				out, errOut, status := d.run(u, method.env, strings.Fields(tt.args)...)
				if status != 0 || errOut != "" || !regexp.MustCompile(tt.want).MatchString(out) {
					t.Errorf("%s: status %d, stdout %q, stderr %q", tt.args, status, out, errOut)
				}
				if token, ok := strings.CutPrefix(strings.TrimSpace(out), "SCHED_JWT="); ok {
					tokens = append(tokens, token)
				}
			}
		})
	}
	// No command asks the accounting daemon.
	if err := d.accounting("unix", u).Verify(t.Context(), model.Credential{}); err != nil {
		t.Errorf("accounting over the socket: %v", err)
	}
	if err := d.accounting("tcp").Verify(t.Context(), tokenCredential(tokens[0])); err != nil {
		t.Errorf("accounting with a token: %v", err)
	}
	if err := d.accounting("tcp").Verify(t.Context(), model.Credential{}); err == nil {
		t.Error("accounting serves a client without a token over TCP")
	}
	log := d.daemonLog("schedctld") + d.daemonLog("scheddbd")
	if !strings.Contains(log, "token created") {
		t.Fatalf("a word that must be in the log was not found:\n%s", log)
	}
	for _, token := range tokens {
		if strings.Contains(log, token[strings.IndexByte(token, '.')+1:]) || strings.Contains(log, token[strings.LastIndexByte(token, '.')+1:]) {
			t.Errorf("a token is in the log:\n%s", log)
		}
	}
}

// TestTokensThatAreNone runs schedctl with an unusable token in its
// environment. schedctl must report the defect of the token, and the remedy.
func TestTokensThatAreNone(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	u := d.self()
	otherIssuer := issuer{secret: []byte("another key, of thirty-five bytes !")}
	for _, tt := range []struct{ name, env, wantErr, hint string }{
		{"nothing", "SCHED_JWT=", "SCHED_JWT is set but empty", "unset SCHED_JWT"},
		{"the gateway's word", "SCHED_JWT=daemon", "which only schedrestd supports", "unset SCHED_JWT"},
		{"garbage", "SCHED_JWT=good day", "the token in SCHED_JWT is invalid: not ", "schedctl token"},
		{"expired", "SCHED_JWT=" + d.hs256().token(u.Name, -time.Minute), "expired ", "schedctl token"},
		{"of another key", "SCHED_JWT=" + otherIssuer.token(u.Name, time.Hour), "does not accept the credential", "see the controller's log"},
		{"of nobody", "SCHED_JWT=" + d.hs256().token("no-such-user-here", time.Hour), "does not accept the credential", "see the controller's log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, args := range [][]string{{"ping"}, {"token"}, {"show", "job"}, {"show", "node"}, {"show", "job", "1"}, {"cancel", "1"}} {
				out, errOut, status := d.run(u, []string{tt.env}, args...)
				line, hint, _ := strings.Cut(errOut, "\n")
				if status != 4 || out != "" || !strings.HasPrefix(line, "error: ") || !strings.Contains(line, tt.wantErr) ||
					!strings.HasPrefix(hint, "hint: ") || !strings.Contains(hint, tt.hint) {
					t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, out, errOut)
				}
			}
		})
	}
}

// TestJobVisibility checks that ordinary users can see and cancel only their
// own jobs, and that root and SchedUser can see and cancel all jobs. This must
// hold whether the kernel or a token identifies the user.
func TestJobVisibility(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	sched, ok := harness.LookupAccount("mail")
	if !ok || sched == alice || sched == bob {
		t.Skip("this machine has no third user")
	}
	d := newDaemons(t, "jwt_key=KEY", func(conf string) string {
		return strings.NewReplacer("SchedUser=root\n", "SchedUser="+sched.Name+"\n", "AccountingStorageType=accounting_storage/scheddbd", "").Replace(conf)
	})
	harness.Must(t, os.Chown(d.Key(), int(sched.UID), int(sched.GID)))
	d.Up(d.Ctld)
	ctx, keys := t.Context(), d.hs256()
	tcp := d.controller("tcp")
	submit := func(u harness.Account) uint32 {
		job, err := tcp.Submit(ctx, tokenCredential(keys.token(u.Name, time.Hour)), d.heldJob(""))
		harness.Must(t, err)
		return job.StepID.JobID
	}
	for _, network := range []string{"unix", "tcp"} {
		for _, user := range []struct {
			harness.Account
			seesAll bool
		}{{alice, false}, {bob, false}, {d.self(), true}, {sched, true}} {
			t.Run(user.Name+" by "+network, func(t *testing.T) {
				own, foreign := submit(alice), submit(bob)
				if user.Account == bob {
					own, foreign = foreign, own
				}
				ctl, cred := d.controller("unix", user.Account), model.Credential{}
				if network == "tcp" {
					ctl, cred = tcp, tokenCredential(keys.token(user.Name, time.Hour))
				}
				var seen []uint32
				_, err := ctl.Jobs(ctx, cred, model.Query{Flags: model.ShowAll}, func(j *model.Job) error {
					seen = append(seen, j.StepID.JobID)
					return nil
				})
				if err != nil || !slices.Contains(seen, own) || slices.Contains(seen, foreign) != user.seesAll {
					t.Errorf("sees %v of %d and %d: %v", seen, own, foreign, err)
				}
				for id, good := range map[uint32]bool{own: true, foreign: user.seesAll} {
					if _, err := ctl.Job(ctx, cred, id, model.Query{}, func(*model.Job) error { return nil }); (err == nil) != good || !good && errorNumber(err) != fault.InvalidJobID {
						t.Errorf("shown %d: %v", id, err)
					}
					if err := ctl.Kill(ctx, cred, fmt.Sprint(id), 9, 0); (err == nil) != good || !good && errorNumber(err) != fault.InvalidJobID {
						t.Errorf("cancels %d: %v", id, err)
					}
					cancelled := false
					_, err := tcp.Job(ctx, tokenCredential(keys.token("root", time.Hour)), id, model.Query{}, func(j *model.Job) error {
						cancelled = j.State == model.JobCancelled
						return nil
					})
					harness.Must(t, err)
					if cancelled != good {
						t.Errorf("job %d is cancelled: %t", id, cancelled)
					}
				}
				if !user.seesAll {
					harness.Must(t, tcp.Kill(ctx, tokenCredential(keys.token("root", time.Hour)), fmt.Sprint(foreign), 9, 0))
				}
			})
		}
	}
}

// TestActingForAnother checks that a request with root's token may act as
// another user. The job must belong to that user, and the log must contain both
// names. If a request with any other token names another user, both daemons
// must refuse it like a bad credential.
func TestActingForAnother(t *testing.T) {
	t.Parallel()
	alice, bob := harness.TwoUsers(t)
	d := newDaemons(t, "jwt_key=KEY")
	d.start()
	ctx, keys := t.Context(), d.hs256()
	tcp, cred := d.controller("tcp"), model.Credential{Token: keys.token("root", time.Hour), ActAs: alice.Name}

	job, err := tcp.Submit(ctx, cred, d.heldJob("id -un; id -gn"))
	harness.Must(t, err)
	file := filepath.Join(d.Work, fmt.Sprintf("sched-%d.out", job.StepID.JobID))
	harness.Eventually(t, "the job has written who it is", func() bool {
		text, _ := os.ReadFile(file)
		return strings.HasPrefix(string(text), alice.Name+"\n") && strings.Count(string(text), "\n") == 2
	})
	heldJob, err := tcp.Submit(ctx, cred, d.heldJob(""))
	harness.Must(t, err)
	id := fmt.Sprint(heldJob.StepID.JobID)
	if err := tcp.Kill(ctx, model.Credential{Token: cred.Token, ActAs: bob.Name}, id, 9, 0); errorNumber(err) != fault.InvalidJobID {
		t.Errorf("root's token cancels alice's job as bob: %v", err)
	}
	harness.Must(t, tcp.Kill(ctx, cred, id, 9, 0))
	identity := fmt.Sprintf("uid=%d user=%s by=root peer=", alice.UID, alice.Name)
	for _, want := range []string{fmt.Sprintf(`msg="job accepted" job=%s %s`, id, identity), fmt.Sprintf(`msg="job signal requested" job=%s signal=9 flags=0 %s`, id, identity)} {
		if log := d.daemonLog("schedctld"); !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	if err := d.accounting("tcp").Verify(ctx, cred); err != nil {
		t.Errorf("accounting for alice: %v", err)
	}

	userToken, rootToken := keys.token(alice.Name, time.Hour), cred.Token
	refusals := map[string]bool{}
	for _, c := range []model.Credential{
		{Token: userToken, ActAs: bob.Name}, {Token: userToken, ActAs: "root"}, {Token: userToken, ActAs: strings.ToUpper(alice.Name)},
		{Token: userToken, ActAs: "no-such-user-here"}, {Token: rootToken, ActAs: "no-such-user-here"},
		{Token: rootToken, ActAs: "0"}, {Token: rootToken, ActAs: "65534"}, {Token: rootToken, ActAs: fmt.Sprint(alice.UID)}, {Token: rootToken, ActAs: "-x"},
		{Token: rootToken, ActAs: strings.ToUpper(alice.Name)}, {Token: rootToken, ActAs: strings.Repeat("a", 65)}, {Token: rootToken, ActAs: userToken},
		{Token: rootToken, ActAs: "nobody"},
		{Token: keys.token("nobody", time.Hour)}, {Token: keys.token("0", time.Hour)}, {Token: keys.token("no-such-user-here", time.Hour)},
		{Token: keys.token(alice.Name, -time.Minute)}, {Token: userToken + "A"}, {Token: userToken, ActAs: userToken},
	} {
		for _, verify := range []func() error{
			func() error { return tcp.Verify(ctx, c) },
			func() error { return d.controller("unix").Verify(ctx, c) }, // otherwise the kernel would identify root
			func() error { return d.accounting("tcp").Verify(ctx, c) },
			func() error { return d.accounting("unix").Verify(ctx, c) },
		} {
			err := verify()
			if errs.KindOf(err) != errs.Unauthenticated || errorNumber(err) != fault.Authentication {
				t.Errorf("%.12s… as %.20s: %v", c.Token, c.ActAs, err)
				continue
			}
			refusals[err.(*errs.Error).Message] = true
		}
	}
	if len(refusals) != 1 {
		t.Errorf("%d different refusals: %v", len(refusals), refusals)
	}
	for _, name := range []string{"schedctld", "scheddbd"} {
		switch log := d.daemonLog(name); {
		case !strings.Contains(log, "msg=listening"):
			t.Errorf("%s: a word that must be in the log was not found:\n%s", name, log)
		case strings.Contains(log, userToken[strings.LastIndexByte(userToken, '.')+1:]):
			t.Errorf("%s logged a token that was sent as a user name:\n%s", name, log)
		}
	}
}

// TestTokensStayOutOfJobs checks that a token in the environment of a
// submission or of the controller reaches neither the job nor the disk.
func TestTokensStayOutOfJobs(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwt_key=KEY")
	planted := issuer{secret: []byte("a key that no daemon has, 34 bytes")}.token("root", time.Hour)
	d.Ctld.Env = append(d.Ctld.Env, "SCHED_JWT="+planted, "SLURM_JWT="+planted)
	d.start()
	desc := d.heldJob("env; exec 1>&-; touch " + d.Work + "/done")
	desc.Environment = append(desc.Environment, "SCHED_JWT="+planted, "MARK=is-kept", "SLURM_JWT="+planted, "SCHED_JWT=again")
	job, err := d.controller("unix").Submit(t.Context(), model.Credential{}, desc)
	harness.Must(t, err)
	if want := "SCHED_JWT and SLURM_JWT removed from the job's environment"; !strings.HasPrefix(job.UserMessage, want) {
		t.Errorf("the user gets %q", job.UserMessage)
	}
	heldDesc := d.heldJob("")
	heldDesc.Environment = desc.Environment // this job waits, so its environment is stored
	_, err = d.controller("unix").Submit(t.Context(), model.Credential{}, heldDesc)
	harness.Must(t, err)
	harness.Eventually(t, "the job has ended", func() bool { _, err := os.Stat(d.Work + "/done"); return err == nil })
	env, err := os.ReadFile(filepath.Join(d.Work, fmt.Sprintf("sched-%d.out", job.StepID.JobID)))
	harness.Must(t, err)
	if !strings.Contains(string(env), "MARK=is-kept\n") || strings.Contains(string(env), "_JWT") {
		t.Errorf("the job's environment:\n%s", env)
	}
	marks := 0
	harness.Must(t, filepath.WalkDir(d.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(path, filepath.Dir(d.schedctl)) {
			return nil
		}
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), "is-kept") {
			marks++
		}
		if strings.Contains(string(text), planted[:40]) || strings.Contains(string(text), planted[len(planted)-40:]) {
			t.Errorf("%s has the token", path)
		}
		return nil
	}))
	if marks < 2 { // one in the output, one in the journal
		t.Error("a text that must be on the disk was not found")
	}
	harness.Must(t, d.controller("unix").Kill(t.Context(), model.Credential{}, fmt.Sprint(job.StepID.JobID+1), 9, 0))
}

// TestKeyTakenBack checks the effect of removing a key from the key set. A
// session that was opened with a token of this key must end at its next
// request, even if the token has not expired. Other sessions must stay open.
func TestKeyTakenBack(t *testing.T) {
	t.Parallel()
	d := newDaemons(t, "jwks=JWKS")
	keys := issuerKeys()
	removed, remaining := issuer{key: keys[0], kid: "a"}, issuer{key: keys[1], kid: "b"}
	d.publish(removed, remaining)
	d.Up(d.DBD)
	token := removed.token(d.Owner, 100*24*time.Hour)
	removedSession, remainingSession := d.openSession(token), d.openSession(remaining.token(d.Owner, time.Hour))
	for range 2 {
		if err := errors.Join(removedSession.requestStats(), remainingSession.requestStats()); err != nil {
			t.Fatal(err)
		}
	}
	d.publish(remaining)
	harness.Eventually(t, "the daemons no longer accept the key", func() bool { return d.accounting("tcp").Verify(t.Context(), tokenCredential(token)) != nil })
	if err := removedSession.requestStats(); errorNumber(err) != fault.Authentication {
		t.Errorf("a session that was opened with the key: %v", err)
	}
	if err := removedSession.requestStats(); err == nil || errorNumber(err) != 0 {
		t.Errorf("the session is still open: %v", err)
	}
	if err := remainingSession.requestStats(); err != nil {
		t.Errorf("a session that was opened with another key: %v", err)
	}
}

// session is a persistent connection to the accounting daemon.
type session struct {
	t  *testing.T
	nc net.Conn
}

func (d *daemons) openSession(token string) *session {
	d.T.Helper()
	nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.Accounting))
	harness.Must(d.T, err)
	d.T.Cleanup(func() { nc.Close() })
	harness.Must(d.T, nc.SetDeadline(time.Now().Add(time.Minute)))
	s := &session{d.T, nc}
	b, err := message.EncodeOpening(codec.V2411, message.FixedCredential(&message.Credential{Plugin: message.PluginJWT, Token: token}),
		&message.PersistInit{Version: codec.V2411, ClusterName: "demo", PersistType: message.PersistToAccounting})
	harness.Must(d.T, err)
	harness.Must(d.T, s.send(b))
	return s
}

// requestStats sends the smallest request that needs a credential.
func (s *session) requestStats() error {
	b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
	harness.Must(s.t, err)
	return s.send(b)
}

// send sends a message. It returns an error if the daemon refuses the message
// or closes the connection.
func (s *session) send(b []byte) error {
	if _, err := s.nc.Write(b); err != nil {
		return err
	}
	answer, err := wire.Read(s.nc, 1<<20)
	if err != nil {
		return err
	}
	var rc message.PersistRC
	if t := message.Type(binary.BigEndian.Uint16(answer)); t != message.AccountingRC {
		return nil
	}
	harness.Must(s.t, message.DecodeBody(codec.V2411, message.AccountingRC, answer[2:], &rc))
	if rc.Code != 0 {
		return fault.Of(rc.Code, rc.Comment)
	}
	return nil
}
