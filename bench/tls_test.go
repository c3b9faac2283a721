package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/gateway/worker"
	"schedrestd/gateway/worker/keys"
)

// handshakes is a table that compares the TLS handshakes of two servers. The
// first server's key is in the keeper. The second server's key is in the
// server's own process.
var handshakes = &comparison{title: "a TLS 1.3 handshake (P-256) for each request, median of paired rounds", columns: []string{"key in the keeper", "key in the process"}}

// secureEnv names an environment variable that holds the directory of a key and
// its certificate. If the variable is set, this program runs as the
// single-process server with TLS. The other settings are in the variable that
// singleEnv names.
const secureEnv = "SCHEDRESTD_BENCH_SECURE"

func init() {
	if dir := os.Getenv(secureEnv); dir != "" {
		fmt.Fprintln(os.Stderr, serveSecure(os.Getenv(singleEnv), dir))
		os.Exit(1)
	}
	tables = append(tables, handshakes)
}

// serveSecure serves the same API as serveSingle, but over TLS. The key is in
// the memory of this process.
func serveSecure(text, dir string) error {
	var s singleConfig
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	handler, err := worker.NewHandler(s.Setup, keys.New(), nil)
	if err != nil {
		return err
	}
	server := http.Server{Addr: s.Listen, Handler: handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	return server.ListenAndServeTLS(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
}

// BenchmarkHandshakes measures requests that each use a new TLS connection. No
// handshake resumes an earlier session.
func BenchmarkHandshakes(b *testing.B) {
	l := theLab.open(b)
	ports, err := site.FreePorts(2)
	must(b, err)
	gateway, process := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	dir := filepath.Dir(l.Conf())
	config := l.writeCertificate(b, dir)

	keeperPart := l.Schedrestd(l.bin, "https://"+gateway)
	for i, arg := range keeperPart.Args {
		if arg == l.Conf() {
			keeperPart.Args[i] = filepath.Join(dir, "tls.conf")
		}
	}
	keeperPart.Name, keeperPart.Log, keeperPart.Check = "keeper", l.Log("keeper"), answersTLS(gateway, config)
	singlePart := l.singlePart(b, process)
	singlePart.Name, singlePart.Log, singlePart.Check = "TLS in one process", l.Log("secure"), answersTLS(process, config)
	singlePart.Env = append(singlePart.Env, secureEnv+"="+dir)

	var servers []server
	for i, p := range []site.Part{keeperPart, singlePart} {
		d := l.start(b, p)
		b.Cleanup(func() { _ = d.Stop() })
		servers = append(servers, newServer(b, d, tlsDialer([]string{gateway, process}[i], config)))
	}
	compare(b, handshakes, "one handshake per request", servers, load{request: get("/healthz"), count: 400})
}

// writeCertificate writes three files to dir: a key, its certificate, and a
// configuration of the gateway that names both. It returns a TLS configuration
// for clients.
func (l *lab) writeCertificate(b *testing.B, dir string) *tls.Config {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(b, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"bench"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(b, err)
	leaf, err := x509.ParseCertificate(der)
	must(b, err)
	text, err := x509.MarshalPKCS8PrivateKey(key)
	must(b, err)
	conf, err := os.ReadFile(l.Conf())
	must(b, err)
	paths := [2]string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	parameters := "TLSParameters=restd_cert_file=" + paths[0] + ",restd_cert_key_file=" + paths[1] + "\n"
	must(b, errors.Join(
		os.WriteFile(paths[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(paths[1], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.conf"), append(conf, parameters...), 0o644)))
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Config{RootCAs: roots, ServerName: "bench"}
}

// tlsDialer returns a dialer that connects to address and performs the TLS
// handshake.
func tlsDialer(address string, config *tls.Config) dialer {
	return func(int) (net.Conn, error) { return tls.Dial("tcp", address, config) }
}

// answersTLS returns a function that checks whether the server at address
// answers over TLS.
func answersTLS(address string, config *tls.Config) func(context.Context) error {
	return func(context.Context) error {
		c, err := tls.Dial("tcp", address, config)
		if err != nil {
			return err
		}
		defer c.Close()
		fmt.Fprintf(c, get("/healthz"), "Connection: close\r\n")
		text, err := io.ReadAll(c)
		if err == nil && !strings.HasPrefix(string(text), "HTTP/1.1 "+strconv.Itoa(http.StatusOK)) {
			err = fmt.Errorf("%.200s", text)
		}
		return err
	}
}
