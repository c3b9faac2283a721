package sandbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/socket/sockettest"
)

// TestServe checks that a sandboxed process can serve HTTP/1.1, HTTP/2, TLS,
// compressed streams and uploads, even with panics, many threads and a busy
// garbage collector.
func TestServe(t *testing.T) {
	everyUser(t, func(t *testing.T, as *syscall.Credential) {
		for name, o := range map[string]Options{"worker": {}, "worker that dials UNIX sockets": {Unix: true}} {
			t.Run(name, func(t *testing.T) {
				out, status := child(t, "serve", o, as)
				checkSurvived(t, out, status)
				if out != "<nil>\nend\n" {
					t.Error(out)
				}
			})
		}
	})
}

// connectionPairs holds connections that were accepted before the sandbox was
// closed, because a worker can't accept connections itself.
type connectionPairs struct {
	server, client chan net.Conn
}

func (p *connectionPairs) Accept() (net.Conn, error) {
	c, ok := <-p.server
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p *connectionPairs) Close() error   { return nil }
func (p *connectionPairs) Addr() net.Addr { return &net.TCPAddr{} }

func (p *connectionPairs) dial(context.Context, string, string) (net.Conn, error) {
	select {
	case c := <-p.client:
		return c, nil
	default:
		return nil, errors.New("no more connections were prepared")
	}
}

func preparePairs(n int) (*connectionPairs, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	p := &connectionPairs{server: make(chan net.Conn, n), client: make(chan net.Conn, n)}
	for range n {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			return nil, err
		}
		s, err := ln.Accept()
		if err != nil {
			return nil, err
		}
		p.client <- c
		p.server <- &lateConn{Conn: s}
	}
	return p, nil
}

// lateConn turns a descriptor into a connection at the first Read or Write, as
// a worker does.
type lateConn struct {
	net.Conn
	once sync.Once
}

func (l *lateConn) reopen() {
	l.once.Do(func() {
		f, err := l.Conn.(*net.TCPConn).File()
		if err != nil {
			panic(err)
		}
		c, err := net.FileConn(f)
		if err != nil {
			panic(err)
		}
		f.Close()
		l.Conn.Close()
		tcp := c.(*net.TCPConn)
		if err := errors.Join(tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: time.Second, Count: 3}),
			tcp.SetNoDelay(true)); err != nil {
			panic(err)
		}
		l.Conn = c
	})
}

func (l *lateConn) Read(p []byte) (int, error) {
	l.reopen()
	return l.Conn.Read(p)
}

func (l *lateConn) Write(p []byte) (int, error) {
	l.reopen()
	return l.Conn.Write(p)
}

func serve(o Options) error {
	plain, err := preparePairs(160)
	if err != nil {
		return err
	}
	secret, err := preparePairs(160)
	if err != nil {
		return err
	}
	config, roots, err := ownCertificate()
	if err != nil {
		return err
	}
	munged, err := listenUnix()
	if err != nil {
		return err
	}
	noNewPrivs()
	if _, err := denyFiles(o); err != nil {
		return err
	}
	if err := installFilter(o); err != nil {
		return err
	}
	if err := runProbes(o); err != nil {
		return err
	}
	load := []error{overHTTP(plain, nil, nil), overHTTP(secret, config, roots), takeDescriptor(), threads()}
	if o.Unix {
		load = append(load, askMunged(munged))
	}
	time.Sleep(100 * time.Millisecond)
	return errors.Join(load...)
}

// overHTTP runs a server and its clients in a process that can use only the
// descriptors that it already has.
func overHTTP(pairs *connectionPairs, config *tls.Config, roots *x509.CertPool) error {
	server := &http.Server{Handler: handler(), ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, TLSConfig: config}
	var ln net.Listener = pairs
	scheme := "http"
	if config != nil {
		ln, scheme = tls.NewListener(pairs, config), "https"
	}
	go server.Serve(ln)
	clients := []*http.Client{
		{Transport: &http.Transport{DialContext: pairs.dial, MaxConnsPerHost: 8, MaxIdleConnsPerHost: 8, TLSClientConfig: &tls.Config{RootCAs: roots}}},
		{Transport: &http.Transport{DialContext: pairs.dial, MaxConnsPerHost: 8, MaxIdleConnsPerHost: 8, TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}},
	}
	var wg sync.WaitGroup
	failed := make(chan error, 1000)
	for i := range 16 {
		wg.Go(func() {
			for range 2 {
				if err := ask(clients[i%2], scheme+"://127.0.0.1"); err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	close(failed)
	var list []error
	for err := range failed {
		list = append(list, err)
	}
	return errors.Join(list...)
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for i := range 5000 {
			fmt.Fprintf(z, `{"job":%d,"garbage":%q}`, i, strings.Repeat("x", 50))
		}
		z.Close()
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		_, err := os.ReadFile("/etc/hostname")
		_, err2 := os.Stat("/etc/hostname")
		fmt.Fprint(w, errors.Is(err, os.ErrPermission), err2)
	})
	return mux
}

func ask(c *http.Client, base string) error {
	for _, path := range []string{"/list", "/upload", "/file", "/panic"} {
		body := bytes.NewReader(nil)
		if path == "/upload" {
			body = bytes.NewReader(make([]byte, 1<<20))
		}
		r, err := http.NewRequest("POST", base+path, body)
		if err != nil {
			return err
		}
		answer, err := c.Do(r)
		if path == "/panic" {
			if err == nil {
				return errors.New("a handler that panics was answered for")
			}
			continue
		}
		if err != nil {
			return err
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || path == "/upload" && string(got) != fmt.Sprint(1<<20) || path == "/file" && !strings.HasPrefix(string(got), "true") || len(got) < 5 {
			return fmt.Errorf("%s: %.40q, %v", path, got, err)
		}
	}
	return nil
}

// threads makes the runtime start threads, preempt loops, and release memory.
func threads() error {
	var wg sync.WaitGroup
	var all [][]byte
	var lock sync.Mutex
	const many = 64 // more threads than the vDSO's getrandom has allocated memory for so far
	var barrier sync.WaitGroup
	barrier.Add(many)
	for range many {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			barrier.Done()
			barrier.Wait()
			rand.Read(make([]byte, 8))
			for i := range 20 {
				piece := make([]byte, 1<<18)
				piece[i] = 1
				lock.Lock()
				all = append(all[max(0, len(all)-64):], piece)
				lock.Unlock()
			}
		})
	}
	stop := time.Now().Add(200 * time.Millisecond)
	wg.Go(func() {
		for n := 0; ; n++ { // a loop without calls, which only a signal can preempt
			if n%(1<<20) == 0 && time.Now().After(stop) {
				return
			}
		}
	})
	for range 5 {
		runtime.GC()
		debug.FreeOSMemory()
	}
	wg.Wait()
	var key [64]byte
	_, err := rand.Read(key[:])
	mapping, err2 := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return errors.Join(err, err2, unix.Munmap(mapping))
}

// takeDescriptor receives a descriptor that waits in the channel, and sends an
// answer.
func takeDescriptor() error {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(Channel, make([]byte, 1), oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err == nil && n == 0 {
		err = errors.New("no descriptor came")
	}
	_, failed := unix.Write(Channel, []byte("y"))
	return errors.Join(err, failed)
}

// listening keeps the listener of listenUnix open.
var listening net.Listener

// listenUnix listens on a new UNIX socket, and returns its path.
func listenUnix() (string, error) {
	dir, err := sockettest.MkdirTemp("sandbox")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "socket")
	listening, err = net.Listen("unix", path)
	return path, err
}

func askMunged(path string) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Dir(path))
	return errors.Join(err, c.Close())
}

func ownCertificate() (*tls.Config, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2", "http/1.1"}}, roots, nil
}
