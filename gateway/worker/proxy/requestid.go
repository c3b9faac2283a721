package proxy

import (
	"encoding/hex"
	"net/http"
	"strings"
)

// maxRequestID limits the length of a request id from a proxy, in bytes.
const maxRequestID = 128

// proxyID returns the request id that a proxy sent in X-Request-Id. If there is
// none, it returns the trace-id in traceparent, or "". A repeated or malformed
// header counts as absent, because the id is copied to the answer, the log and
// the audit log.
func proxyID(h http.Header) string {
	if ids := h.Values("X-Request-Id"); len(ids) == 1 && isRequestID(ids[0]) {
		return ids[0]
	}
	if parents := h.Values("Traceparent"); len(parents) == 1 {
		return traceID(parents[0])
	}
	return ""
}

// isRequestID reports whether s consists of visible ASCII characters.
func isRequestID(s string) bool {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxRequestID
}

// traceID returns the trace-id of a traceparent header, whose format is defined
// by W3C Trace Context: VERSION-TRACE-PARENT-FLAGS in lower-case hex. Later
// versions may append fields.
func traceID(s string) string {
	if len(s) > maxRequestID {
		return ""
	}
	parts := strings.Split(s, "-")
	if len(parts) < 4 || len(parts) > 4 && parts[0] == "00" || parts[0] == "ff" ||
		!isHex(parts[0], 2) || !isHex(parts[1], 32) || !isHex(parts[2], 16) || !isHex(parts[3], 2) ||
		strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return parts[1]
}

// isHex reports whether s consists of the given number of lower-case hex
// digits.
func isHex(s string, digits int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == digits && s == strings.ToLower(s)
}
