package abuse

import (
	"fmt"
	"strings"

	"schedrestd/integration/harness"
)

// fields returns requests with malformed or excessive header fields.
func (s requestBuilder) fields() []abuse {
	return []abuse{
		{name: "a folded field", text: s.get("X-Other: 1\r\n 2\r\n", ""), want: "400"},
		{name: "a field folded with a tab", text: s.get("X-Other: 1\r\n\t2\r\n", ""), want: "400"},
		{name: "a fold of nothing", text: s.get("X-Other: 1\r\n \r\n", ""), want: "400"},
		{name: "a fold before all fields", text: s.line("GET "+nodePath("own")+" HTTP/1.1\r\n X-Other: 1", "Host: lab\r\n", ""), want: "400"},
		{name: "a bare return in a value", text: s.get("X-Other: a\rb\r\n", ""), want: "400"},
		{name: "a bare return and a field", text: s.get("X-Other: a\rX-SCHED-USER-NAME: root\r\n", ""), want: "400"},
		{name: "a bare line end in the header", text: s.get("X-Other: a\nX-More: b\r\n", ""), want: served},
		{name: "bare line ends alone", text: strings.ReplaceAll(s.get("", ""), "\r\n", "\n"), want: served},
		{name: "a return, a return, a line end", text: s.get("X-Other: a\r\r\n", ""), want: "400"},
		{name: "a header that ends with bare line ends", text: strings.TrimSuffix(s.get("X-Other: a\n", ""), "\r\n") + "\n", want: served},
		{name: "a zero byte in a value", text: s.get("X-Other: a\x00b\r\n", ""), want: "400"},
		{name: "a zero byte in a name", text: s.get("X-Ot\x00her: a\r\n", ""), want: "400"},
		{name: "a zero byte before the request", text: "\x00" + s.get("", ""), want: "400"},
		{name: "a control character in a value", text: s.get("X-Other: a\x01b\r\n", ""), want: "400"},
		{name: "DEL in a value", text: s.get("X-Other: a\x7fb\r\n", ""), want: "400"},
		{name: "bytes above 127 in a value", text: s.get("X-Other: \xff\xfe\xc0\x80\r\n", ""), want: served},
		{name: "bytes above 127 in a name", text: s.get("X-Oth\xe9r: a\r\n", ""), want: "400"},
		{name: "a blank before the colon", text: s.get("X-Other : a\r\n", ""), want: "400"},
		{name: "a tab before the colon", text: s.get("X-Other\t: a\r\n", ""), want: "400"},
		{name: "a blank in a name", text: s.get("X Other: a\r\n", ""), want: "400"},
		{name: "no colon", text: s.get("X-Other\r\n", ""), want: "400"},
		{name: "no name", text: s.get(": a\r\n", ""), want: "400"},
		{name: "nothing but a colon", text: s.get(":\r\n", ""), want: "400"},
		{name: "a name in brackets", text: s.get("(X): a\r\n", ""), want: "400"},
		{name: "a name in quotes", text: s.get("\"X\": a\r\n", ""), want: "400"},
		{name: "a slash in a name", text: s.get("X/Y: a\r\n", ""), want: "400"},
		{name: "an empty value", text: s.get("X-Other:\r\n", ""), want: served},
		{name: "a blank line of blanks", text: s.line("GET "+nodePath("own")+" HTTP/1.1", "Host: lab\r\n \r\n", ""), want: "400"},
		{name: "a thousand fields", text: s.get(strings.Repeat("X-O: 1\r\n", 1000), ""), want: served},
		{name: "ten thousand fields", text: s.get(strings.Repeat("X-O: 1\r\n", 10_000), ""), want: "431"},
		{name: "a thousand different fields", text: s.get(distinctFields(1000), ""), want: served},
		{name: "a long field", text: s.get("X-Other: "+strings.Repeat("a", 20_000)+"\r\n", ""), want: served},
		{name: "a field that is too long", text: s.get("X-Other: "+strings.Repeat("a", 200_000)+"\r\n", ""), want: "431"},
		{name: "a name that is too long", text: s.get(strings.Repeat("a", 200_000)+": 1\r\n", ""), want: "431"},
		{name: "a flood of folds", text: s.get("X-Other: 1\r\n"+strings.Repeat(" \r\n", 5000), ""), want: "400"},
		{name: "a megabyte of header", text: s.get(strings.Repeat("X-Other: "+strings.Repeat("a", 1000)+"\r\n", 1000), ""), want: "431"},
	}
}

func distinctFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-O%d: 1\r\n", i)
	}
	return b.String()
}

// hosts returns requests whose host is ambiguous.
func (s requestBuilder) hosts() []abuse {
	host := func(lines string) string { return s.line("GET "+nodePath("own")+" HTTP/1.1", lines, "") }
	return []abuse{
		{name: "two hosts", text: host("Host: lab\r\nHost: elsewhere.invalid\r\n"), want: "400"},
		{name: "one host twice", text: host("Host: lab\r\nHost: lab\r\n"), want: "400"},
		{name: "no host", text: host(""), want: "400"},
		{name: "an empty host", text: host("Host:\r\n"), want: served},
		{name: "a host with a path", text: host("Host: lab/sched\r\n"), want: "400"},
		{name: "a host with a user", text: host("Host: root@lab\r\n"), want: "400"},
		{name: "hosts in a list", text: host("Host: lab, elsewhere.invalid\r\n"), want: "400"},
		{name: "a host with a blank", text: host("Host: lab elsewhere\r\n"), want: "400"},
		{name: "a host with a zero byte", text: host("Host: lab\x00\r\n"), want: "400"},
		{name: "a folded host", text: host("Host: lab\r\n elsewhere.invalid\r\n"), want: "400"},
		{name: "a blank before the host's colon", text: host("Host : lab\r\n"), want: "400"},
		{name: "a port below zero", text: host("Host: lab:-1\r\n"), want: "400"},
		{name: "half an address in brackets", text: host("Host: [::1\r\n"), want: "400"},
		{name: "more behind an address in brackets", text: host("Host: [::1]lab\r\n"), want: "400"},
		{name: "a port in letters", text: host("Host: lab:http\r\n"), want: "400"},
		{name: "an address in brackets", text: host("Host: [::1]:80\r\n"), want: served},
		{name: "a host of quotes", text: host("Host: \"lab\"\r\n"), want: "400"},
		{name: "an address of another host", text: s.line("GET http://elsewhere.invalid"+nodePath("own")+" HTTP/1.1", "Host: lab\r\n", ""), want: served},
		{name: "an address with a user", text: s.line("GET http://root:x@lab"+nodePath("own")+" HTTP/1.1", "Host: lab\r\n", ""), want: "400"},
		{name: "an address of another scheme", text: s.line("GET ftp://lab"+nodePath("own")+" HTTP/1.1", "Host: lab\r\n", ""), want: "400"},
		{name: "an address without a host", text: s.line("GET http://"+nodePath("own")+" HTTP/1.1", "Host: lab\r\n", ""), want: "400"},
		{name: "an address without Host", text: s.line("GET http://lab"+nodePath("own")+" HTTP/1.1", "", ""), want: "400"},
		{name: "a file's address", text: s.line("GET file:///etc/passwd HTTP/1.1", "Host: lab\r\n", ""), want: "400"},
	}
}

// lines returns requests whose first line is malformed, or names something that
// is unavailable.
func (s requestBuilder) lines() []abuse {
	own := nodePath("own")
	line := func(text string) string { return s.line(text, "Host: lab\r\n", "") }
	return []abuse{
		{name: "an asterisk", text: line("OPTIONS * HTTP/1.1"), want: "204, mark 404"},
		{name: "an asterisk of a GET", text: line("GET * HTTP/1.1"), want: "400"},
		{name: "an authority", text: line("GET lab:80 HTTP/1.1"), want: "400"},
		{name: "CONNECT", text: line("CONNECT lab:80 HTTP/1.1"), want: "404, mark 404"},
		{name: "CONNECT of a path", text: line("CONNECT " + own + " HTTP/1.1"), want: "own 405, mark 404"},
		{name: "TRACE", text: line("TRACE " + own + " HTTP/1.1"), want: "own 405, mark 404"},
		{name: "OPTIONS", text: line("OPTIONS " + own + " HTTP/1.1"), want: "own 204, mark 404"},
		{name: "HEAD", text: line("HEAD " + own + " HTTP/1.1"), want: served},
		{name: "HEAD with a body", text: s.line("HEAD "+own+" HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 400"},
		{name: "a method in small letters", text: line("get " + own + " HTTP/1.1"), want: "own 405, mark 404"},
		{name: "an unknown method", text: line("FETCH " + own + " HTTP/1.1"), want: "own 405, mark 404"},
		{name: "a method that is no token", text: line("G@T " + own + " HTTP/1.1"), want: "400"},
		{name: "a method with a bracket", text: line("GE(T " + own + " HTTP/1.1"), want: "400"},
		{name: "a long method", text: line(strings.Repeat("A", 5000) + " " + own + " HTTP/1.1"), want: "own 405, mark 404"},
		{name: "no method", text: line(" " + own + " HTTP/1.1"), want: "400"},
		{name: "a zero byte in the method", text: line("GE\x00T " + own + " HTTP/1.1"), want: "400"},
		{name: "tabs in the line", text: line("GET\t" + own + "\tHTTP/1.1"), want: "400"},
		{name: "two blanks before the path", text: line("GET  " + own + " HTTP/1.1"), want: "400"},
		{name: "two blanks before the version", text: line("GET " + own + "  HTTP/1.1"), want: "400"},
		{name: "a blank at the end of the line", text: line("GET " + own + " HTTP/1.1 "), want: "400"},
		{name: "a blank in the path", text: line("GET " + own + " x HTTP/1.1"), want: "400"},
		{name: "a return in the line", text: line("GET " + own + "\r HTTP/1.1"), want: "400"},
		{name: "no path", text: line("GET HTTP/1.1"), want: "400"},
		{name: "HTTP/0.9", text: "GET " + own + "\r\n", want: "400"},
		{name: "HTTP/0.9 by its number", text: line("GET " + own + " HTTP/0.9"), want: "505"},
		{name: "HTTP/1.2", text: line("GET " + own + " HTTP/1.2"), want: served},
		{name: "HTTP/1.10", text: line("GET " + own + " HTTP/1.10"), want: "400"},
		{name: "HTTP/1", text: line("GET " + own + " HTTP/1"), want: "400"},
		{name: "HTTP/1.1x", text: line("GET " + own + " HTTP/1.1x"), want: "400"},
		{name: "HTTP/01.1", text: line("GET " + own + " HTTP/01.1"), want: "400"},
		{name: "http/1.1", text: line("GET " + own + " http/1.1"), want: "400"},
		{name: "HTTP/2.0", text: line("GET " + own + " HTTP/2.0"), want: "505"},
		{name: "HTTP/3.0", text: line("GET " + own + " HTTP/3.0"), want: "505"},
		{name: "HTTP/+1.1", text: line("GET " + own + " HTTP/+1.1"), want: "400"},
		{name: "ICY/1.1", text: line("GET " + own + " ICY/1.1"), want: "400"},
		{name: "the preface of HTTP/2", text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", want: "505"},
		{name: "a TLS handshake", text: "\x16\x03\x01\x00\x05hello", want: "400"},
		{name: "an answer", text: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", want: "400"},
		{name: "a line without an end", text: "GET " + own, want: "400", open: true},
		{name: "a header without an end", text: strings.TrimSuffix(s.get("", ""), "\r\n"), want: "400", open: true},
		{name: "nothing", text: "", want: "", open: true},
		{name: "the PROXY protocol", text: "PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + s.get("", ""), want: "400"},
	}
}

// paths returns requests with paths that a filter in front of the gateway could
// misread.
func (s requestBuilder) paths() []abuse {
	v := "/sched/" + harness.Version
	var list []abuse
	add := func(name, path, want string) {
		list = append(list, abuse{name: name, text: s.line("GET "+path+" HTTP/1.1", "Host: lab\r\n", ""), want: want})
	}
	add("%00", v+"/node/own-"+nonce+"%00", "own 400, mark 404")
	add("%00 and more", v+"/node/own-"+nonce+"%00/../evil", "own 400, mark 404")
	add("a zero byte in the path", v+"/node/own-"+nonce+"\x00", "400")
	add("..", v+"/node/../node/own-"+nonce, "own 400, mark 404")
	add("%2e%2e", v+"/node/%2e%2e/node/own-"+nonce, "own 400, mark 404")
	add("%2E.", v+"/node/%2E./node/own-"+nonce, "own 400, mark 404")
	add(".. beyond the root", "/../../../.."+nodePath("own"), "own 400, mark 404")
	add("a dot", v+"/./node/./own-"+nonce, served)
	add("%2f", v+"/node%2fown-"+nonce, served)
	add("%5c", v+"%5cnode%5cown-"+nonce, served)
	add("a backslash", v+"\\node\\own-"+nonce, served)
	add("..\\", v+"/node/..\\node\\own-"+nonce, served)
	add("double encoding", v+"/%256eode/own-"+nonce, served)
	add("double encoding of ..", v+"/%252e%252e/own-"+nonce, served)
	add("a letter encoded", v+"/%6eode/own-"+nonce, served)
	add("parameters of a part", v+"/node;x=y/own-"+nonce, served)
	add("parameters of ..", v+"/..;/node/own-"+nonce, served)
	add("%zz", v+"/node/own-"+nonce+"%zz", "400")
	add("% at the end", v+"/node/own-"+nonce+"%", "400")
	add("%u002e", v+"/%u002e%u002e/own-"+nonce, "400")
	add("bytes above 127", v+"/node/own-"+nonce+"\xff\xfe", served)
	add("an overlong slash", v+"/node/own-"+nonce+"\xc0\xaf", served)
	add("an overlong .. encoded", v+"/%c0%ae%c0%ae/own-"+nonce, served)
	add("many slashes", strings.Repeat("/", 5000)+strings.TrimPrefix(nodePath("own"), "/"), served)
	add("slashes before", "//elsewhere.invalid"+nodePath("own"), served)
	add("slashes within", "//sched///"+harness.Version+"//node//own-"+nonce+"//", served)
	add("a fragment", nodePath("own")+"#x", "400")
	add("a fragment in the query", nodePath("own")+"?x#y", "400")
	add("%0d%0a", nodePath("own")+"%0d%0aX-Evil:%20x", served)
	add("%0d%0a in the query", nodePath("own")+"?x=%0d%0aX-Evil:%20x", served)
	add("DEL in the path", nodePath("own")+"\x7f", "400")
	add("an odd query", nodePath("own")+"?=&&;;%zz", "own 400, mark 404")
	add("no leading slash", strings.TrimPrefix(nodePath("own"), "/"), "400")
	add("another case", strings.ToUpper(v)+"/NODE/own-"+nonce, served)
	return list
}

// sizes returns requests that are too large.
func (s requestBuilder) sizes() []abuse {
	own := nodePath("own")
	line := func(text string) string { return s.line(text, "Host: lab\r\n", "") }
	return []abuse{
		{name: "a long path", text: line("GET " + own + strings.Repeat("a", 20_000) + " HTTP/1.1"), want: "own 414, mark 404"},
		{name: "a path that is too long", text: line("GET " + own + strings.Repeat("a", 200_000) + " HTTP/1.1"), want: "414"},
		{name: "a long query", text: line("GET " + own + "?" + strings.Repeat("a", 20_000) + " HTTP/1.1"), want: "own 414, mark 404"},
		{name: "a query of a megabyte", text: line("GET " + own + "?" + strings.Repeat("a", 1<<20) + " HTTP/1.1"), want: "414"},
		{name: "a method of a megabyte", text: line(strings.Repeat("A", 1<<20) + " " + own + " HTTP/1.1"), want: "414"},
		{name: "parameters by the thousand", text: line("GET " + own + "?" + strings.Repeat("a=&", 2000) + " HTTP/1.1"), want: "own 414, mark 404"},
		{name: "empty lines by the thousand", text: strings.Repeat("\r\n", 5000) + s.get("", ""), want: "400"},
	}
}

// specialHeaders returns requests with headers that have a special meaning to
// some servers or proxies.
func (s requestBuilder) specialHeaders() []abuse {
	own := nodePath("own")
	typed := func(kind string) string { return s.post(kind+"\r\n"+contentLength(jobBody), jobBody) }
	return []abuse{
		{name: "Range", text: s.get("Range: bytes=0-1,5-6,"+strings.Repeat("0-,", 500)+"1-\r\n", ""), want: served},
		{name: "If-Match", text: s.get("If-Match: \"x\"\r\nIf-None-Match: *\r\nIf-Modified-Since: yesterday\r\n", ""), want: served},
		{name: "If-Match of a DELETE", text: s.line("DELETE /sched/"+harness.Version+"/job/4000000000 HTTP/1.1", "Host: lab\r\nIf-Match: \"x\"\r\n", ""), want: "412, mark 404"},
		{name: "If-None-Match of a DELETE", text: s.line("DELETE /sched/"+harness.Version+"/job/4000000000 HTTP/1.1", "Host: lab\r\nIf-None-Match: *\r\n", ""), want: "412, mark 404"},
		{name: "Upgrade to h2c", text: s.get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", ""), want: served},
		{name: "Upgrade to a web socket", text: s.get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), want: served},
		{name: "Upgrade with a body", text: s.post("Connection: Upgrade\r\nUpgrade: h2c\r\n"+contentLength(s.hidden()), s.hidden()), want: "400, mark 404"},
		{name: "Expect", text: s.post("Expect: 100-continue\r\n"+contentLength(jobBody), jobBody), want: submitted},
		{name: "Expect in capitals", text: s.post("Expect: 100-CONTINUE\r\n"+contentLength(jobBody), jobBody), want: submitted},
		{name: "Expect something else", text: s.post("Expect: x\r\n"+contentLength(jobBody), jobBody), want: "417"},
		{name: "Expect two things", text: s.post("Expect: 100-continue, x\r\n"+contentLength(s.hidden()), s.hidden()), want: "417"},
		{name: "Expect of a GET", text: s.get("Expect: 100-continue\r\n", ""), want: served},
		{name: "Expect with a body that is refused", text: s.line("GET "+own+" HTTP/1.1", "Host: lab\r\nExpect: 100-continue\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 400"},
		{name: "Expect without a credential", text: strings.Replace(s.post("Expect: 100-continue\r\n"+contentLength(s.hidden()), s.hidden()), s.auth, "", 1), want: "401"},
		{name: "Connection lists the token", text: s.get("Connection: X-SCHED-USER-TOKEN, X-SCHED-USER-NAME\r\n", ""), want: "own 401, mark 404"},
		{name: "Connection lists close and keep-alive", text: s.get("Connection: close, keep-alive\r\n", ""), want: servedThenClosed},
		{name: "Connection lists Host and the length", text: s.post("Connection: Host, Content-Length\r\n"+contentLength(jobBody), jobBody), want: submitted},
		{name: "Keep-Alive", text: s.get("Keep-Alive: timeout=99999, max=99999\r\n", ""), want: served},
		{name: "another method by a header", text: s.get("X-HTTP-Method-Override: DELETE\r\n_method: DELETE\r\n", ""), want: served},
		{name: "another path by a header", text: s.get("X-Original-URL: /sched/"+harness.Version+"/node/evil-"+nonce+"\r\nX-Rewrite-URL: /sched/"+harness.Version+"/node/evil-"+nonce+"\r\n", ""), want: served},
		{name: "another client by a header", text: s.get("Forwarded: for=127.0.0.1\r\nX-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\n", ""), want: served},
		{name: "Content-Encoding", text: typed("Content-Encoding: gzip"), want: "415"},
		{name: "Content-Encoding identity", text: typed("Content-Encoding: identity"), want: submitted},
		{name: "two Content-Encodings", text: typed("Content-Encoding: identity\r\nContent-Encoding: gzip"), want: "415"},
		{name: "Content-Type", text: typed("Content-Type: application/json; charset=utf-8"), want: submitted},
		{name: "another charset", text: typed("Content-Type: application/json; charset=utf-7"), want: "415"},
		{name: "two Content-Types", text: typed("Content-Type: application/json\r\nContent-Type: application/yaml"), want: "415"},
		{name: "one Content-Type twice", text: typed("Content-Type: application/json\r\nContent-Type: application/json"), want: submitted},
		{name: "two charsets", text: typed("Content-Type: application/json; charset=utf-8; charset=utf-7"), want: "415"},
		{name: "a form", text: typed("Content-Type: application/x-www-form-urlencoded"), want: "415"},
		{name: "a form in parts", text: typed("Content-Type: multipart/form-data; boundary=x"), want: "415"},
		{name: "an empty Content-Type", text: typed("Content-Type:"), want: "415"},
		{name: "Content-Types in a list", text: typed("Content-Type: application/json, text/plain"), want: "415"},
		{name: "YAML", text: typed("Content-Type: application/yaml"), want: submitted},
		{name: "Accept of many", text: s.get("Accept: "+strings.Repeat("a/b;q=0.1,", 2000)+"*/*\r\n", ""), want: served},
		{name: "Accept of nothing", text: s.get("Accept: text/html\r\n", ""), want: "own 406, mark 404"},
		{name: "Accept-Encoding of many", text: s.get("Accept-Encoding: "+strings.Repeat("gzip,", 4000)+"identity\r\n", ""), want: served},
		{name: "a body of a DELETE", text: s.line("DELETE /sched/"+harness.Version+"/job/own-"+nonce+" HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 400"},
		{name: "a body of a GET", text: s.get(contentLength(s.hidden()), s.hidden()), want: "own 400"},
		{name: "a body of an OPTIONS", text: s.line("OPTIONS "+own+" HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 204"},
		{name: "a body of a TRACE", text: s.line("TRACE "+own+" HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 405"},
		{name: "a body where there is no path", text: s.line("POST /own-"+nonce+" HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "own 404"},
		{name: "a body of a page", text: s.line("GET /healthz HTTP/1.1", "Host: lab\r\n"+contentLength(s.hidden()), s.hidden()), want: "200"},
	}
}

// sequences returns texts that contain several requests, some of them with
// bodies.
func (s requestBuilder) sequences() []abuse {
	closes := s.get("Connection: close\r\n", "")
	return []abuse{
		{name: "three in one", text: s.get("", "") + s.get("", ""), want: "own 404, own 404, mark 404"},
		{name: "a submission between", text: s.get("", "") + s.post(contentLength(jobBody), jobBody), want: "own 404, own 422, mark 404"},
		{name: "twenty in one", text: strings.Repeat(s.get("", ""), 20), want: strings.Repeat("own 404, ", 20) + "mark 404"},
		{name: "one behind the last", text: closes + s.hidden(), want: servedThenClosed},
		{name: "one behind a bad one", text: s.get("Content-Length: x\r\n", "") + s.hidden(), want: "400"},
		{name: "one in a body", text: s.post(contentLength(s.hidden()), s.hidden()), want: "400, mark 404"},
		{name: "one in chunks", text: s.post("Transfer-Encoding: chunked\r\n", chunk(s.hidden())+lastChunk), want: "400"},
		{name: "one in a body without a credential", text: strings.Replace(s.post(contentLength(s.hidden()), s.hidden()), s.auth, "", 1), want: "401"},
		{name: "an empty line between", text: s.post(contentLength(jobBody), jobBody) + "\r\n" + s.get("", ""), want: "own 422, own 404, mark 404"},
		{name: "a bad one behind a good one", text: s.get("", "") + "\x00\x01\x02\r\n\r\n", want: "own 404, 400"},
		{name: "an answer in a body", text: s.post(contentLength("HTTP/1.1 200 OK\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n"), want: "400, mark 404"},
	}
}
