package pod

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"gopkg.in/yaml.v3"

	"schedrestd/integration/harness"
)

// Slinky is the pod in which Slinky's operator runs slurmrestd.
type Slinky struct {
	Pod struct {
		SecurityContext struct {
			RunAsUser  int `yaml:"runAsUser"`
			RunAsGroup int `yaml:"runAsGroup"`
			FSGroup    int `yaml:"fsGroup"`
		} `yaml:"securityContext"`
		Container struct {
			Args              []string
			WithoutAccounting []string `yaml:"withoutAccounting"`
			Env               []struct{ Name, Value string }
			ProbePort         int `yaml:"probePort"`
		}
		Volume struct {
			Path        string
			DefaultMode os.FileMode `yaml:"defaultMode"`
		}
	}
	Restricted struct {
		ReadOnly    bool   `yaml:"readOnlyRootFilesystem"`
		Escalation  bool   `yaml:"allowPrivilegeEscalation"`
		Drop        bool   `yaml:"dropCapabilities"`
		SeccompType string `yaml:"seccompProfile"`
	}
	Services  map[string]int
	Search    []string
	SlurmConf string `yaml:"slurmConf"`
}

//go:embed slinky.yaml
var slinky []byte

// NewSlinky reads the description of the pod.
func NewSlinky(t *testing.T) *Slinky {
	t.Helper()
	s := &Slinky{}
	harness.Must(t, yaml.Unmarshal(slinky, s))
	return s
}

// WithoutAccounting changes the pod to that of a cluster without slurmdbd.
func (s *Slinky) WithoutAccounting() {
	s.Pod.Container.Args = s.Pod.Container.WithoutAccounting
	s.SlurmConf = strings.Replace(s.SlurmConf, "AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageType=accounting_storage/none", 1)
}

// Pod is a pod that runs until the test ends.
type Pod struct {
	PID     int // of the container's first process
	URL     string
	Client  *http.Client // makes a new connection for each request
	cluster *Cluster
	port    int
	log     string
	done    chan struct{}
}

// Start runs an image in the pod, and waits until the startup probe succeeds.
func (s *Slinky) Start(t *testing.T, k *Cluster, i *Image, restricted bool) *Pod {
	t.Helper()
	context, hostname := s.Pod.SecurityContext, "slurm-restapi-0"
	c := container{Root: i.Root, Network: k.pod, UID: context.RunAsUser, GID: context.RunAsGroup, FSGroup: context.FSGroup,
		Argv: append(append([]string{}, i.Entrypoint...), s.Pod.Container.Args...),
		Env:  append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + hostname, "HOME=/"}, i.Env...),
		Files: map[string]string{
			"/etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n" + podIP + "\t" + hostname + "\n",
			"/etc/hostname":    hostname + "\n",
			"/etc/resolv.conf": "search " + strings.Join(s.Search, " ") + "\nnameserver " + dnsIP + "\noptions ndots:5\n",
		},
		Volume: volume{Path: s.Pod.Volume.Path, Mode: s.Pod.Volume.DefaultMode, Files: map[string]string{"slurm.conf": s.SlurmConf, "slurm.key": "only Slurm's programs read this"}},
	}
	if restricted {
		r := s.Restricted
		c.ReadOnly, c.NoNewPrivs, c.NoCapabilities, c.RuntimeDefault = r.ReadOnly, !r.Escalation, r.Drop, r.SeccompType == "RuntimeDefault"
	}
	names := map[string]string{}
	for name, port := range s.Services {
		ip := serviceIP(port)
		names[name+"."+s.Search[0]] = ip
		c.Env = append(c.Env, serviceVariables(name, ip, port)...)
	}
	k.dns(t, names)
	c.Env = append(c.Env, serviceVariables("kubernetes", "10.96.0.1", 443)...)
	for _, v := range s.Pod.Container.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	p := &Pod{cluster: k, port: s.Pod.Container.ProbePort, log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	p.URL = fmt.Sprintf("http://%s:%d", podIP, p.port)
	p.Client = harness.NewClient(func() (net.Conn, error) { return k.dial(p.port) })
	p.run(t, c)
	harness.Eventually(t, "the startup probe succeeds", func() bool {
		select {
		case <-p.done:
			t.Fatal("the container has ended")
		default:
		}
		return p.Probe() == nil
	})
	return p
}

func (p *Pod) run(t *testing.T, c container) {
	t.Helper()
	text, err := json.Marshal(c)
	harness.Must(t, err)
	log, err := os.Create(p.log)
	harness.Must(t, err)
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{launchVariable + "=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	cmd.Stdout, cmd.Stderr = log, log
	harness.Must(t, cmd.Start())
	p.PID = cmd.Process.Pid
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill() // all processes of the container are killed with it
		<-p.done
		if t.Failed() {
			t.Logf("the container logged:\n%s", p.Logged(t))
		}
	})
}

// Probe connects to the pod's port, as the kubelet does.
func (p *Pod) Probe() error {
	conn, err := p.cluster.dial(p.port)
	if err == nil {
		conn.Close()
	}
	return err
}

// Terminate waits until the container has ended after the signal that the kubelet
// sends.
func (p *Pod) Terminate(t *testing.T) {
	t.Helper()
	harness.Must(t, syscall.Kill(p.PID, syscall.SIGTERM))
	<-p.done
}

// Logged returns what the container has logged.
func (p *Pod) Logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	harness.Must(t, err)
	return string(text)
}

// Claims returns the claims of a token that the operator signs for a user.
func Claims(user string) jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{"jti": fmt.Sprint(now.UnixNano()), "iss": "slurm-operator", "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(15 * time.Minute).Unix(), "sun": user}
}
