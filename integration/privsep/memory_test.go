package privsep

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plantedSecrets holds the secrets that requests have planted in the memory of
// this worker.
var plantedSecrets [][]byte

// holdSecret keeps a secret in the memory of this worker. The request contains
// the secret.
func holdSecret(r *http.Request) {
	raw, _ := hex.DecodeString(r.FormValue("hex"))
	plantedSecrets = append(plantedSecrets, raw)
}

// needles returns the forms that a key can have in memory: its secret numbers,
// and the lines of its text that are not public. Each number is included in two
// forms: with the most significant byte first, as in files (DER), and with the
// least significant byte first, as in a big.Int. Each form is short enough for
// the search (see overlap).
func needles(t *testing.T, key crypto.Signer, text string) (list [][]byte) {
	t.Helper()
	var numbers []*big.Int
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		scalar, err := key.Bytes()
		must(t, err)
		numbers = append(numbers, new(big.Int).SetBytes(scalar))
	case *rsa.PrivateKey:
		numbers = append(numbers, key.D, key.Precomputed.Dp, key.Precomputed.Dq)
		numbers = append(numbers, key.Primes...)
	}
	for _, n := range numbers {
		forwards := n.Bytes()
		forwards = forwards[len(forwards)/3:] // omits the first bytes, so that the alignment of the number to machine words does not matter
		forwards = forwards[:min(len(forwards), overlap)]
		backwards := slices.Clone(forwards)
		slices.Reverse(backwards)
		list = append(list, forwards, backwards)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[len(lines)/2 : len(lines)-2] { // the public numbers of an RSA key are in the first half; the public point of an ECDSA key is in the last line
		list = append(list, []byte(line))
	}
	return list
}

// TestKeyStaysInTheKeeper searches the memory of the keeper, the workers and
// the parent of a gateway that has signed with its certificate's key. Only the
// keeper may have the key. The log must contain no part of it.
func TestKeyStaysInTheKeeper(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, kind := range []string{"ECDSA", "RSA"} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(t, nil)
			var key crypto.Signer = s.key
			text := keyText(t, s.key)
			if kind == "RSA" {
				key = newRSA()
				text = s.certify(key)
			}
			c := s.config(testConfig{Service: identityOf("65534", "65534", ""), Listen: listens("127.0.0.2:0")})
			c.Setup.LogLevel = int8(slog.LevelDebug)
			g := serve(t, nil, c)
			open := g.await("serving", nil)["listen"].([]any)[1].(string)
			workers := map[int]bool{}
			for range 10 {
				_, body, err := secured(s.client(g.addr), "/pid")
				must(t, err)
				workers[pidOf(t, body)] = true
			}
			g.addr = open
			patterns := needles(t, key, text)
			for n := 0; n < map[string]int{"ECDSA": 1, "RSA": 5}[kind]; n++ {
				if !inMemory(t, g.keeperPID(1), patterns[2*n:2*n+2]) {
					t.Errorf("secret number %d of the key is not found in the keeper", n)
				}
			}
			g.checkOnlyKeeperHas(patterns, workers, s.Key)
			raw, err := x509.MarshalPKCS8PrivateKey(key)
			must(t, err)
			g.checkNotLogged(append(patterns, raw[len(raw)/2:]))
		})
	}
}

// TestKeeperIsConfined inspects, from outside, the keeper of a gateway that
// root started. The keeper must be confined like a worker. Its uid must be
// neither root's nor the workers'.
func TestKeeperIsConfined(t *testing.T) {
	t.Parallel()
	needRoot(t)
	g := serve(t, nil, newSite(t, nil).config(testConfig{Service: identityOf("65534", "65534", "")}))
	r := g.await("keeper ready", nil)
	keeper, parent := int(r["pid"].(float64)), g.cmd.Process.Pid
	if enforced := g.await("worker ready", nil)["sandbox"]; r["sandbox"] != enforced {
		t.Errorf("it is sandboxed with %v, a worker with %v", r["sandbox"], enforced)
	}
	for _, id := range []string{"Uid", "Gid"} {
		ids := strings.Fields(status(t, keeper, id))
		if ids[0] == "0" || ids[0] == "65534" || len(slices.Compact(ids)) != 1 {
			t.Errorf("its %s is %v", id, ids)
		}
	}
	for name, want := range map[string]string{"CapInh": none16, "CapPrm": none16, "CapEff": none16, "CapBnd": none16, "CapAmb": none16,
		"NoNewPrivs": "1", "Groups": "", "Seccomp": "2"} {
		if got := status(t, keeper, name); got != want {
			t.Errorf("its %s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"ipc", "net", "mnt", "pid"} {
		if a, b := namespace(t, keeper, name), namespace(t, parent, name); a == b {
			t.Errorf("it shares the %s namespace %s with the parent", name, a)
		}
	}
	limits := readProc(t, keeper, "limits")
	for _, name := range []string{"Max core file size", "Max file size"} {
		_, after, _ := strings.Cut(limits, name)
		if f := strings.Fields(after); len(f) < 2 || f[0] != "0" || f[1] != "0" {
			t.Errorf("its %s is not 0", name)
		}
	}
	if info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", keeper)); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("it is dumpable: %v", err)
	}
	if open := descriptors(t, keeper); len(open) > 10 || slices.ContainsFunc(open, func(d string) bool { return strings.Contains(d, "key.pem") }) {
		t.Errorf("its descriptors: %q", open)
	}
}

// none16 is the empty set of capabilities, as /proc shows it.
const none16 = "0000000000000000"

// certify installs key and a certificate for it, and returns the text of the
// key.
func (s *site) certify(key crypto.Signer) string {
	s.t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"gateway"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(s.t, err)
	s.leaf, err = x509.ParseCertificate(der)
	must(s.t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must(s.t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	s.put(s.Key, text, 0o600)
	s.put(s.Certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o644)
	return text
}

// checkOnlyKeeperHas checks that the keeper has a key in its memory, and that
// the workers and the parent do not. To show that the search works,
// checkOnlyKeeperHas also searches for two texts that must be found: one that
// it plants in each worker, and the path of the key file in the parent.
func (g *gateway) checkOnlyKeeperHas(key [][]byte, workers map[int]bool, path string) {
	t := g.t
	t.Helper()
	if !inMemory(t, g.keeperPID(1), key) {
		t.Fatal("the key is not found in the keeper, so that not finding it elsewhere says nothing")
	}
	plant := make([]byte, 32)
	_, _ = rand.Read(plant)
	for pid := range workers {
		g.eventually(fmt.Sprintf("worker %d answers", pid), func() bool { return pidOf(t, g.mustGet("/hold?hex="+hex.EncodeToString(plant))) == pid })
		if !inMemory(t, pid, [][]byte{plant}) {
			t.Errorf("the text planted in worker %d is not found", pid)
		}
		if inMemory(t, pid, key) {
			t.Errorf("worker %d has the key", pid)
		}
		for _, d := range descriptors(t, pid) {
			if strings.Contains(d, filepath.Base(path)) {
				t.Errorf("worker %d has the key open: %s", pid, d)
			}
		}
	}
	if !inMemory(t, g.cmd.Process.Pid, [][]byte{[]byte(path)}) {
		t.Error("what the parent must have is not found in it")
	}
	if inMemory(t, g.cmd.Process.Pid, key) {
		t.Error("the parent has the key")
	}
}

// checkNotLogged searches the whole log for parts of a key, in every form in
// which they could be logged. To show that the search works, checkNotLogged
// first logs another text and searches for that.
func (g *gateway) checkNotLogged(key [][]byte) {
	g.t.Helper()
	plant := []byte("a part of a key!")
	for _, way := range spellings(plant) {
		g.mustGet("/log?text=" + url.QueryEscape(way))
		g.eventually("the log has "+way, func() bool { return g.logged(way) })
	}
	for _, part := range key {
		for _, way := range spellings(part[:16]) {
			if g.logged(way) {
				g.t.Errorf("the log has a part of the key: %q", way)
			}
		}
	}
}

// spellings returns the forms in which a part of a key could be logged.
func spellings(part []byte) []string {
	words := strings.Trim(fmt.Sprint(part), "[]")
	quoted := strconv.Quote(string(part))
	list := []string{hex.EncodeToString(part), fmt.Sprintf("%X", part), words, strings.ReplaceAll(words, " ", ", "), quoted[1 : len(quoted)-1], string(part)}
	for skip := range 3 { // the part may begin at any byte of a longer text
		list = append(list, base64.RawStdEncoding.EncodeToString(part[skip:])[:16], base64.RawURLEncoding.EncodeToString(part[skip:])[:16])
	}
	return list
}

// logged reports whether a line of the log contains text, either literally or
// as JSON escapes it.
func (g *gateway) logged(text string) bool {
	raw, _ := json.Marshal(text)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		line, _ := json.Marshal(r)
		if bytes.Contains(line, []byte(text)) || bytes.Contains(line, raw[1:len(raw)-1]) {
			return true
		}
	}
	return false
}

// overlap is the number of bytes that are searched twice, at the end of one
// piece of memory and at the start of the next. So the search finds every
// needle of up to this length.
const overlap = 64

// inMemory reports whether one of the needles is in memory that process pid can
// write to.
func inMemory(t *testing.T, pid int, needles [][]byte) bool {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	must(t, err)
	defer mem.Close()
	searched := 0
	for line := range strings.Lines(readProc(t, pid, "maps")) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || rights[:2] != "rw" {
			continue
		}
		const window = 1 << 20
		for at := from; at < to; at += window {
			piece := make([]byte, min(window+overlap, to-at))
			n, _ := mem.ReadAt(piece, at)
			searched += n
			for _, needle := range needles {
				if bytes.Contains(piece[:n], needle) {
					return true
				}
			}
		}
	}
	if searched < 1<<20 {
		t.Fatalf("only %d bytes of process %d could be read", searched, pid)
	}
	return false
}
