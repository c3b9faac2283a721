// Package mcp is a server of the Model Context Protocol
// (https://modelcontextprotocol.io), with which a language model uses tools.
// The client starts the server as a program: each line of standard input and
// output is a message of JSON-RPC 2.0. The server answers one request after the
// other.
//
// Texts of users reach the model only in the Data of a Result, which is marked,
// and in errors.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"schedrestd/internal/errs"
)

// versions are the supported versions of the protocol, the newest last.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18"}

const (
	maxLine = 8 << 20 // bytes of a message; a script may have half as many
	maxCall = 2 * time.Minute
)

// The numbers of JSON-RPC's errors.
const parseError, invalidRequest, unknownMethod, invalidParams = -32700, -32600, -32601, -32602

// A Server offers tools to a client.
type Server struct {
	Name, Version string
	Instructions  string // for the model
	Tools         []Tool
}

// An answer has the members of an answer to a request.
type answer map[string]any

// newError returns an answer with an error. The id is nil if it is unknown.
func newError(id json.RawMessage, code int, text string) answer {
	return answer{"id": id, "error": map[string]any{"code": code, "message": text}}
}

// Serve serves a client until the input ends or ctx is done.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, ended := make(chan []byte), make(chan error, 1)
	go func() { // a read of standard input can't be interrupted
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			lines <- bytes.Clone(bytes.TrimSpace(scanner.Bytes()))
		}
		ended <- scanner.Err()
	}()
	w := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return errs.Wrap(err, errs.Malformed, "read a message of at most %d MiB", maxLine>>20)
		case line := <-lines:
			if a := s.answer(ctx, line); a != nil {
				a["jsonrpc"] = "2.0"
				if err := w.Encode(a); err != nil {
					return err
				}
			}
		}
	}
}

// answer answers a message. It returns nil for a notification or an empty line.
func (s *Server) answer(ctx context.Context, line []byte) answer {
	var m struct {
		JSONRPC, Method string
		ID              json.RawMessage // nil for a notification
		Params          struct {
			ProtocolVersion, Name string
			Arguments             json.RawMessage
		}
	}
	err := json.Unmarshal(line, &m)
	_, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case len(line) == 0:
		return nil
	case err != nil && !isType:
		return newError(nil, parseError, "the line is not valid JSON")
	case m.JSONRPC != "2.0" || m.Method == "" || m.ID != nil && !strings.ContainsRune(`"-0123456789`, rune(m.ID[0])):
		return newError(nil, invalidRequest, "not a single request of JSON-RPC 2.0")
	case m.ID == nil:
		return nil
	case err != nil:
		return newError(m.ID, invalidParams, "a parameter has the wrong type")
	}
	switch m.Method {
	case "initialize":
		version := m.Params.ProtocolVersion
		if !slices.Contains(versions, version) {
			version = versions[len(versions)-1]
		}
		return answer{"id": m.ID, "result": map[string]any{"protocolVersion": version, "capabilities": map[string]any{"tools": struct{}{}},
			"serverInfo": map[string]string{"name": s.Name, "version": s.Version}, "instructions": s.Instructions}}
	case "ping":
		return answer{"id": m.ID, "result": struct{}{}}
	case "tools/list":
		tools := make([]any, len(s.Tools))
		for i := range s.Tools {
			tools[i] = s.Tools[i].describe()
		}
		return answer{"id": m.ID, "result": map[string]any{"tools": tools}}
	case "tools/call":
		i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == m.Params.Name })
		if i < 0 {
			return newError(m.ID, invalidParams, "unknown tool")
		}
		return answer{"id": m.ID, "result": s.Tools[i].result(ctx, m.Params.Arguments)}
	}
	return newError(m.ID, unknownMethod, "unknown method")
}
