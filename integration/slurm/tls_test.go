package slurm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	demo "schedrestd/bundled/demo/site"
	"schedrestd/internal/programtest"
)

// withS2N is set if Slurm's daemons speak TLS (SLURM_TLS=s2n). Debian's Slurm is
// built without TLS: "cluster RELEASE s2n" adds it.
//
// throughTLS is set if a forwarder in front of the daemons, which stay plain,
// does what they would do with TLSType=tls/s2n (SLURM_TLS=1). Only the gateway's
// configuration leads to the forwarder.
var (
	withS2N    = os.Getenv("SLURM_TLS") == "s2n"
	throughTLS = os.Getenv("SLURM_TLS") != "" && !withS2N
)

// forwarders are the programs between the gateway and the daemons, by name. They
// run in the machine; each is a copy of this test program.
var forwarders = map[string]func() error{"tlsforward": forwardTLS, "protocolforward": forwardProtocols}

// forwards maps the ports of the forwarder to those of the daemons.
var forwards = map[string]string{"127.0.0.1:16817": "127.0.0.1:6817", "127.0.0.1:16819": "127.0.0.1:6819"}

// forwarderLines are the lines that lead the gateway to the forwarder.
const forwarderLines = "SlurmctldPort=16817\nAccountingStoragePort=16819\n"

const tlsLines = forwarderLines + "TLSType=tls/s2n\n"

// conf returns the path of the gateway's configuration in the machine.
func (m *machine) conf() string {
	if throughTLS {
		return "/etc/slurm/tls.conf"
	}
	return "/etc/slurm/slurm.conf"
}

// secure writes the certificates and the gateway's configuration, and starts the
// forwarder. It is called for each new machine.
func (m *machine) secure() error {
	etc := filepath.Join(m.root, "etc/slurm")
	old, err := filepath.Glob(filepath.Join(etc, "*cert*.pem"))
	for _, path := range old {
		err = errors.Join(err, os.Remove(path))
	}
	if err = errors.Join(err, demo.WriteCertificates(etc, "head")); err != nil {
		return err
	}
	return m.startForwarder("tlsforward", m.conf(), tlsLines)
}

// startForwarder starts a forwarder, and writes the file conf, which has the
// lines that lead the gateway to it.
func (m *machine) startForwarder(name, conf, lines string) error {
	program := filepath.Join(m.root, "opt/gateway", name)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	os.Remove(program)
	err := errors.Join(programtest.Copy("/proc/self/exe", program, 0o755),
		os.WriteFile(filepath.Join(m.root, conf), []byte("Include /etc/slurm/slurm.conf\n"+lines), 0o644))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(m.root, "var/log/slurm", name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c := m.command(context.Background(), "root", "/opt/gateway/"+name)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait() // it ends with the machine
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(log.Name())
		if strings.Contains(string(text), "ready") || err != nil {
			return err
		}
		if time.Since(start) > time.Minute {
			return fmt.Errorf("the forwarder is not ready: %s", text)
		}
	}
}

// forwardTLS is the program of the forwarder that speaks TLS.
func forwardTLS() error {
	pair, err := tls.LoadX509KeyPair("/etc/slurm/ctld_cert.pem", "/etc/slurm/ctld_cert_key.pem")
	if err != nil {
		return err
	}
	// Slurm's daemons offer no sessions.
	config := &tls.Config{Certificates: []tls.Certificate{pair}, SessionTicketsDisabled: true,
		CurvePreferences: []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}}
	return forwardAll(func(nc net.Conn, to string) { forwardConn(tls.Server(nc, config), to) })
}

// forwardAll accepts connections on the ports of forwards, and serves them with
// the function forward. It returns only if it fails.
func forwardAll(forward func(nc net.Conn, to string)) error {
	for from, to := range forwards {
		l, err := net.Listen("tcp", from)
		if err != nil {
			return err
		}
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				go forward(nc, to)
			}
		}()
	}
	fmt.Println("ready")
	select {}
}

// forwardConn copies both directions until both have ended.
func forwardConn(client *tls.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	if err := client.Handshake(); err != nil {
		fmt.Println(client.RemoteAddr(), err)
		return
	}
	go func() {
		io.Copy(server, client)
		server.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(client, server); err == nil {
		client.CloseWrite()
	}
}
