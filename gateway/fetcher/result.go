package fetcher

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/model"
	"schedrestd/rpc/confserver"
)

// The result of the process is a list of texts, each as a netstring: its length,
// a colon, the text, a comma. The first text says which list it is:
//
//	sent, the controller that sent the files, name and text of each file …
//	failed, kind of the error, its text, a hint
const (
	sentFiles = "sent"
	failed    = "failed"
)

var errForm = errs.New(errs.BadAnswer, "the result of %s has another form", Name)

// maxTexts limits the number of texts. It permits more files than package
// confserver does, which returns an error then.
const maxTexts = 4096

// EncodeResult returns the result with the files or with an error.
func EncodeResult(sent conf.Sent, err error) []byte {
	if err != nil {
		return encode(failed, strconv.Itoa(int(errs.KindOf(err))), err.Error(), errs.HintOf(err))
	}
	list := []string{sentFiles, sent.Origin}
	for _, name := range slices.Sorted(maps.Keys(sent.Files)) {
		list = append(list, name, sent.Files[name])
	}
	return encode(list...)
}

func encode(list ...string) (b []byte) {
	for _, s := range list {
		b = fmt.Appendf(b, "%d:%s,", len(s), s)
	}
	return b
}

// decodeResult returns the files, or the error, in a result.
func decodeResult(b []byte) (conf.Sent, error) {
	list, ok := decode(b)
	switch {
	case ok && len(list) == 4 && list[0] == failed:
		kind, err := strconv.ParseUint(list[1], 10, 8)
		if err != nil {
			return conf.Sent{}, errForm
		}
		return conf.Sent{}, &errs.Error{Kind: errs.Kind(kind), Message: printableLines(list[2]), Hint: printable.Text(list[3])}
	case ok && len(list) >= 2 && len(list)%2 == 0 && list[0] == sentFiles:
		var files []model.ConfigFile
		for pair := range slices.Chunk(list[2:], 2) {
			files = append(files, model.ConfigFile{Name: pair[0], Text: pair[1], Exists: true})
		}
		return confserver.Accept(list[1], files)
	}
	return conf.Sent{}, errForm
}

// maxLines limits the lines of an error: one for each attempt.
const maxLines = 64

func printableLines(text string) string {
	lines := strings.SplitN(text, "\n", maxLines)
	for i, line := range lines {
		lines[i] = printable.Text(line)
	}
	return strings.Join(lines, "\n")
}

func decode(b []byte) (list []string, ok bool) {
	for len(b) > 0 {
		digits := bytes.IndexByte(b[:min(len(b), 16)], ':')
		if digits < 0 || len(list) == maxTexts {
			return nil, false
		}
		n, err := strconv.ParseUint(string(b[:digits]), 10, 32)
		rest := b[digits+1:]
		if err != nil || n >= uint64(len(rest)) || rest[n] != ',' {
			return nil, false
		}
		list = append(list, string(rest[:n]))
		b = rest[n+1:]
	}
	return list, true
}
