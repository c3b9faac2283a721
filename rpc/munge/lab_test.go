package munge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/munge"
	"schedrestd/rpc/payload"
	"schedrestd/rpc/wire"
)

// A lab describes a real munged, and a real Slurm that trusts it. It holds the
// NAME=value lines of a file. The environment variable LAB_ENV contains the
// path of that file.
type lab map[string]string

func openLab(t *testing.T) lab {
	t.Helper()
	name := os.Getenv("LAB_ENV")
	if name == "" {
		t.Skip("LAB_ENV names no file that says where a real Slurm is")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l := lab{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			l[key] = value
		}
	}
	return l
}

func (l lab) munge() *munge.Client { return &munge.Client{Socket: l["LAB_MUNGE_SOCKET"]} }

// config returns the configuration of a client that uses only MUNGE to
// authenticate.
func (l lab) config(t *testing.T) client.Config {
	t.Helper()
	return client.Config{
		Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: l["LAB_SLURMCTLD"]}},
		Accounting:  []client.Address{{Name: "dbd", Network: "tcp", Address: l["LAB_SLURMDBD"]}},
		Cluster:     l["LAB_CLUSTER"],
		Munge:       l.munge(),
		MungeUID:    account(t, l["LAB_SLURM_USER"]).Uid,
		Timeout:     time.Minute,
	}
}

// account returns a user of this machine.
func account(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestLabMunged creates and decodes credentials with a real munged.
func TestLabMunged(t *testing.T) {
	c, ctx, uid := openLab(t).munge(), limited(t), uint32(os.Geteuid())
	c.TTL = 2 * time.Minute
	want := payload.Of(1008, []byte("body"))
	text, err := c.Encode(ctx, want, uid)
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Decode(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	if d.UID != uid || d.GID != uint32(os.Getegid()) || string(d.Payload) != string(want) {
		t.Errorf("got %+v", d)
	}
	if age := time.Since(d.Encoded); age < -time.Minute || age > time.Minute || d.TTL != c.TTL {
		t.Errorf("made at %v, good for %v", d.Encoded, d.TTL)
	}
	refused := func(text string, want uint8) {
		t.Helper()
		d, err := c.Decode(ctx, text)
		own, _ := errors.AsType[*munge.Error](err)
		if own == nil || own.Number != want || own.Text == "" || errs.KindOf(err) != errs.Unauthenticated || d.Payload != nil {
			t.Errorf("got %+v, %v, want munge's error %d", d, err, want)
		}
	}
	refused(text, munge.Replayed)
	other, err := c.Encode(ctx, want, uid+1)
	if err != nil {
		t.Fatal(err)
	}
	refused(other, munge.Unauthorized)
	at := len(other) * 3 / 4
	changed := byte('A')
	if other[at] == changed {
		changed = 'B'
	}
	refused(other[:at]+string(changed)+other[at+1:], munge.Invalid)
	refused("no credential", munge.BadCredential)
}

// TestLabSlurm checks that the controller and the accounting daemon accept
// MUNGE credentials over TCP, without a token.
func TestLabSlurm(t *testing.T) {
	cfg, ctx := openLab(t).config(t), limited(t)
	ctl, dbd := client.New(cfg), client.NewAccounting(cfg)
	pings, err := ctl.Ping(ctx, model.Credential{})
	if err != nil || len(pings) != 1 || !pings[0].Responding {
		t.Errorf("ping: %+v, %v", pings, err)
	}
	nodes := 0
	if _, err := ctl.Nodes(ctx, model.Credential{}, model.Query{}, func(*model.Node) error { nodes++; return nil }); err != nil || nodes == 0 {
		t.Errorf("%d nodes, %v", nodes, err)
	}
	if err := dbd.Verify(ctx, model.Credential{}); err != nil {
		t.Errorf("accounting: %v", err)
	}
	cfg.MungeUID++ // another user than the daemons'
	if err := client.New(cfg).Verify(ctx, model.Credential{}); err == nil {
		t.Error("the controller decoded another's credential")
	}
	if err := client.NewAccounting(cfg).Verify(ctx, model.Credential{}); err == nil {
		t.Error("the accounting daemon decoded another's credential")
	}
}

// TestLabStolen checks that a captured credential is refused if it is sent with
// another body.
func TestLabStolen(t *testing.T) {
	l, ctx := openLab(t), limited(t)
	cfg := l.config(t)
	v := spoken(t, cfg)
	for name, hashed := range map[string][]byte{"its own body": nil, "another body": []byte("another body")} {
		newCredential := func(kind message.Type, body []byte) (*message.Credential, error) {
			if hashed != nil {
				body = hashed
			}
			text, err := cfg.Munge.Encode(ctx, payload.Of(uint16(kind), body), cfg.MungeUID)
			return &message.Credential{Plugin: message.PluginMunge, Text: text}, err
		}
		request, err := message.EncodeWithCredential(v, 0, message.RequestNodeInfo, newCredential, &message.NodeInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := ask(t, cfg, request)
		if hashed == nil && (err != nil || f.Header.Type != message.ResponseNodeInfo) || hashed != nil && !errors.Is(err, wire.ErrNoMessage) {
			t.Errorf("made for %s: message %d, %v", name, f.Header.Type, err)
		}
	}
}

// spoken returns a protocol version that the controller supports.
func spoken(t *testing.T, cfg client.Config) (v codec.Version) {
	t.Helper()
	cfg.Dial = func(ctx context.Context, a client.Address) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, a.Network, a.Address)
		return tap{nc, &v}, err
	}
	if err := client.New(cfg).Verify(limited(t), model.Credential{}); err != nil {
		t.Fatal(err)
	}
	return v
}

// A tap records the protocol version of the last message that was sent through
// it.
type tap struct {
	net.Conn
	last *codec.Version
}

func (c tap) Write(b []byte) (int, error) {
	*c.last = codec.Version(b[4])
	return c.Conn.Write(b)
}

// ask sends a complete message to the controller and reads the answer.
func ask(t *testing.T, cfg client.Config, request []byte) (message.Frame, error) {
	t.Helper()
	nc, err := net.Dial("tcp", cfg.Controllers[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := nc.Write(request); err != nil {
		t.Fatal(err)
	}
	b, err := wire.Read(nc, message.MaxLength)
	if err != nil {
		return message.Frame{}, err
	}
	return message.ParseFrame(b)
}

// asUser is the name of an environment variable. TestLabJob sets the variable
// in the process that it starts as another user.
const asUser = "MUNGE_TEST_SUBMIT"

// TestLabJob checks that a job belongs to the uid and gid of the process that
// submitted it. Two users submit jobs concurrently.
func TestLabJob(t *testing.T) {
	l := openLab(t)
	if os.Getenv(asUser) != "" {
		submit(t, l)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be other users")
	}
	for _, name := range []string{"alice", "bob"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cred := account(t, name)
			job := l.submitAs(t, cred)
			if got := l.run(t, "squeue", "-h", "-t", "all", "-j", job, "-o", "%U"); got != fmt.Sprint(cred.Uid) {
				t.Errorf("squeue shows job %s of uid %q, want %d", job, got, cred.Uid)
			}
			want := fmt.Sprintf("UserId=%s(%d) GroupId=%s(%d) ", name, cred.Uid, name, cred.Gid)
			if got := l.run(t, "scontrol", "show", "job", job); !strings.Contains(got, want) {
				t.Errorf("scontrol shows, without %q:\n%s", want, got)
			}
			l.run(t, "scancel", job)
		})
	}
}

// submitAs runs this program as the user and group in cred, to submit a job.
func (l lab) submitAs(t *testing.T, cred *syscall.Credential) string {
	t.Helper()
	cmd := exec.CommandContext(limited(t), "/proc/self/exe", "-test.v", "-test.run=^TestLabJob$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), asUser+"=1")
	for key, value := range l { // the lab's file may be readable only by root
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, tail, _ := strings.Cut(string(out), "handed in job ")
	job, _, _ := strings.Cut(tail, ".")
	if job == "" {
		t.Fatalf("it handed in no job:\n%s", out)
	}
	return job
}

// submit submits a job as the user of this process.
func submit(t *testing.T, l lab) {
	desc := &model.JobDesc{Name: "munged", Script: "#!/bin/sh\nid\n", WorkDir: "/tmp",
		Environment: []string{"PATH=/usr/bin:/bin"}, TimeLimit: model.Some(uint32(1))}
	s, err := client.New(l.config(t)).Submit(limited(t), model.Credential{}, desc)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("handed in job %d.\n", s.StepID.JobID)
}

// run returns the output of one of Slurm's own commands.
func (l lab) run(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(limited(t), "chroot", append([]string{l["LAB_ROOT"]}, command...)...).Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return strings.TrimSpace(string(out))
}
