package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"schedrestd/internal/socket/sockettest"
)

// chromium is a running headless Chromium. It is controlled over its debugging
// pipe, with JSON messages that end with a NUL byte. All browsers of a test
// program share it, because its start takes as much processor time as a test.
type chromium struct {
	cmd    *exec.Cmd
	dir    string // its files
	pipe   *os.File
	errOut bytes.Buffer // what it has written to standard error; read after its exit
	ended  chan struct{}

	mu     sync.Mutex // guards the fields below, and writing to pipe
	lastID int
	to     map[int]*inbox    // where the answer to a command goes, by the command's id
	pages  map[string]*inbox // where events go, by session
}

// devMessage is an answer or an event of Chromium.
type devMessage struct {
	ID        int
	SessionID string
	Method    string // of an event
	Params    json.RawMessage
	Result    json.RawMessage
	Error     *struct{ Message string }
}

// inbox is an unlimited queue of messages.
type inbox struct {
	mu     sync.Mutex
	list   []devMessage
	more   chan struct{} // has a token if the list may not be empty
	closed bool
}

func (q *inbox) put(list []devMessage, last bool) {
	q.mu.Lock()
	q.list, q.closed = append(q.list, list...), last
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// next waits for a message. It returns false if Chromium has ended.
func (q *inbox) next() (m devMessage, ok bool) {
	for {
		q.mu.Lock()
		closed := q.closed
		if len(q.list) > 0 {
			m, ok = q.list[0], true
			q.list = q.list[1:]
		}
		q.mu.Unlock()
		if ok || closed {
			return m, ok
		}
		<-q.more
	}
}

// running is the Chromium of this program, or nil.
var running struct {
	sync.Mutex
	*chromium
}

// findChromium returns the Chromium of this program. It starts one if there is
// none, or if the last one has ended.
func findChromium(program string) (*chromium, error) {
	running.Lock()
	defer running.Unlock()
	if running.chromium != nil {
		select {
		case <-running.ended:
			running.stop()
		default:
			return running.chromium, nil
		}
	}
	c, err := startChromium(program)
	running.chromium = c
	return c, err
}

// StopBrowser ends the Chromium of this program, if there is one. A program that
// does not call Main calls it after its tests.
func StopBrowser() {
	running.Lock()
	defer running.Unlock()
	if running.chromium != nil {
		running.stop()
		running.chromium = nil
	}
}

// lookBrowser returns the path of Chromium. Its headless shell is the same engine
// without the windows around a page, and needs half of the processor time.
func lookBrowser() (string, error) {
	if program, err := exec.LookPath("chromium-headless-shell"); err == nil {
		return program, nil
	}
	return exec.LookPath("chromium")
}

func startChromium(program string) (*chromium, error) {
	commands, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer commands.Close()
	from, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answers.Close()
	c := &chromium{pipe: to, ended: make(chan struct{}), to: map[int]*inbox{}, pages: map[string]*inbox{}}
	if c.dir, err = sockettest.MkdirTemp("chromium-"); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
		"--no-first-run", "--disable-background-networking", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
		"--disable-backgrounding-occluded-windows", "--user-data-dir="+c.dir, "--window-size=1280,1400",
		"--host-resolver-rules=MAP *.test 127.0.0.1", "--disable-features=HttpsUpgrades", // tests of other origins
		"--remote-debugging-pipe", "about:blank")
	c.cmd.Env = append(os.Environ(), "HOME="+c.dir, "TMPDIR="+c.dir, "NO_PROXY=127.0.0.1", "http_proxy=", "https_proxy=")
	c.cmd.ExtraFiles = []*os.File{commands, answers}
	c.cmd.Stderr = &c.errOut
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(from)
	return c, nil
}

// read passes messages on until Chromium ends.
func (c *chromium) read(from *os.File) {
	defer from.Close()
	messages := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := messages.ReadBytes(0)
		var m devMessage
		if err == nil {
			err = json.Unmarshal(bytes.TrimRight(text, "\x00"), &m)
		}
		c.mu.Lock()
		if err != nil {
			for _, q := range c.to {
				q.put(nil, true)
			}
			c.to = nil
			c.mu.Unlock()
			_ = c.cmd.Process.Kill() // in case it sends no JSON
			_ = c.cmd.Wait()
			close(c.ended)
			return
		}
		q := c.pages[m.SessionID]
		if m.ID != 0 {
			q = c.to[m.ID]
			delete(c.to, m.ID)
		}
		c.mu.Unlock()
		if q != nil {
			q.put([]devMessage{m}, false)
		}
	}
}

// send sends a command to a session, or to the browser if session is "". The
// answer will arrive in q. It returns the command's id.
func (c *chromium) send(q *inbox, session, method string, params any) (id int, err error) {
	command := map[string]any{"method": method, "params": params}
	if params == nil {
		command["params"] = map[string]any{}
	}
	if session != "" {
		command["sessionId"] = session
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to == nil {
		return 0, fmt.Errorf("chromium has ended")
	}
	c.lastID++
	command["id"] = c.lastID
	text, err := json.Marshal(command)
	if err == nil {
		c.to[c.lastID] = q
		_, err = c.pipe.Write(append(text, 0))
	}
	return c.lastID, err
}

// follow makes the events of a session arrive in q. If q is nil, they are
// dropped.
func (c *chromium) follow(session string, q *inbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages[session] = q; q == nil {
		delete(c.pages, session)
	}
}

// stop ends Chromium, which exits when its pipe is closed, and removes its
// files.
func (c *chromium) stop() {
	c.pipe.Close()
	<-c.ended
	os.RemoveAll(c.dir)
}
