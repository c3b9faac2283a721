package conf

import (
	"fmt"
	"strconv"
	"strings"
)

// Restd holds the settings for slurmrestd in the cluster's configuration, as
// Slurm 26.11 has them, that this gateway also has. No mistake in them prevents
// a start: it causes a warning.
type Restd struct {
	Connections int      // SlurmrestdParameters=conmgr_max_connections; 0 if not given
	Threads     int      // … workerpool_threads or conmgr_threads; 0 if not given
	Layout      []string // SerializerParameters: the words compact, pretty and no_tag, in the order of the file
}

// withoutEffect lists parameters of slurmrestd that this gateway does not need.
// It has limits of its own for the times of clients.
var withoutEffect = []string{"conmgr_connect_timeout", "conmgr_quiesce_timeout", "conmgr_read_timeout", "conmgr_use_poll", "conmgr_wait_write_delay", "conmgr_write_timeout"}

// setRestdParameters sets the SlurmrestdParameters.
func setRestdParameters(r *Restd, v string) error {
	var n notes
	for _, p := range splitList(v) {
		name, value, _ := strings.Cut(p, "=")
		switch name = fold(strings.TrimSpace(name)); name {
		case "conmgr_max_connections":
			n.addNumber(&r.Connections, name, value)
		case "conmgr_threads", "workerpool_threads":
			n.addNumber(&r.Threads, name, value)
		default:
			n.addWord(name, withoutEffect)
		}
	}
	return n.err()
}

// setSerializerParameters sets the SerializerParameters.
func setSerializerParameters(r *Restd, v string) error {
	var n notes
	r.Layout = nil
	for _, word := range splitList(fold(v)) {
		switch word {
		case "compact", "pretty", "no_tag":
			r.Layout = append(r.Layout, word)
		default:
			n.addWord(word, []string{"complex"}) // infinite numbers have a field of their own in every answer
		}
	}
	return n.err()
}

func (n *notes) addNumber(to *int, name, value string) {
	i, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
	if err != nil || i == 0 {
		n.add(name + ": not a number above 0, ignored")
		return
	}
	*to = int(i)
}

// addWord adds a note about a word that has no effect. The words in known are
// Slurm's.
func (n *notes) addWord(word string, known []string) {
	for _, k := range known {
		if word == k {
			n.add(word + ": has no effect on this gateway")
			return
		}
	}
	n.add(fmt.Sprintf("unknown word %q, ignored", word))
}
