package abuse

import (
	"fmt"
	"slices"
	"strings"

	"schedrestd/integration/harness"
)

// abuses returns all abuses, for a client that authenticates as s specifies.
func abuses(s requestBuilder) []abuse {
	return slices.Concat(s.plain(), s.lengths(), s.codings(), s.chunks(), s.fields(), s.hosts(), s.lines(), s.paths(), s.sizes(), s.specialHeaders(), s.sequences())
}

// plain returns correct requests, for comparison with the others.
func (s requestBuilder) plain() []abuse {
	return []abuse{
		{name: "a GET", text: s.get("", ""), want: served},
		{name: "a submission", text: s.post(contentLength(jobBody), jobBody), want: submitted},
		{name: "a submission in chunks", text: s.post("Transfer-Encoding: chunked\r\n", chunk(jobBody)+lastChunk), want: submittedThenClosed},
		{name: "empty lines before", text: "\r\n\r\n" + s.get("", ""), want: served},
		{name: "a GET of HTTP/1.0", text: s.line("GET "+nodePath("own")+" HTTP/1.0", "", ""), want: servedThenClosed},
		{name: "HTTP/1.0 that stays", text: s.line("GET "+nodePath("own")+" HTTP/1.0", "Connection: keep-alive\r\n", ""), want: servedThenClosed},
	}
}

// lengths returns requests whose body has an ambiguous length.
func (s requestBuilder) lengths() []abuse {
	n := len(jobBody)
	length := func(format string) string { return fmt.Sprintf("Content-Length: "+format+"\r\n", n) }
	return []abuse{
		{name: "the length twice", text: s.post(contentLength(jobBody)+contentLength(jobBody), jobBody), want: submitted},
		{name: "two lengths", text: s.post("Content-Length: 0\r\n"+contentLength(s.hidden()), s.hidden()), want: "400"},
		{name: "two lengths, the long one first", text: s.post(contentLength(s.hidden())+"Content-Length: 0\r\n", s.hidden()), want: "400"},
		{name: "the length in a list", text: s.post(length("%d, %[1]d"), jobBody), want: "400"},
		{name: "two lengths in a list", text: s.post("Content-Length: 0, 5\r\n", s.hidden()), want: "400"},
		{name: "a length and a comma", text: s.post(length("%d,"), jobBody), want: "400"},
		{name: "a length with a plus", text: s.post(length("+%d"), jobBody), want: "400"},
		{name: "a length below zero", text: s.post("Content-Length: -1\r\n", s.hidden()), want: "400"},
		{name: "minus zero", text: s.post("Content-Length: -0\r\n", s.hidden()), want: "400"},
		{name: "a length with a blank in it", text: s.post("Content-Length: 1 6\r\n", jobBody), want: "400"},
		{name: "a length with an underscore", text: s.post("Content-Length: 1_6\r\n", jobBody), want: "400"},
		{name: "a length in hex", text: s.post("Content-Length: 0x10\r\n", jobBody), want: "400"},
		{name: "a length with an exponent", text: s.post("Content-Length: 1e1\r\n", jobBody), want: "400"},
		{name: "a length with a point", text: s.post("Content-Length: 13.0\r\n", jobBody), want: "400"},
		{name: "a length with a semicolon", text: s.post(length("%d;x"), jobBody), want: "400"},
		{name: "a length in quotes", text: s.post(length(`"%d"`), jobBody), want: "400"},
		{name: "a huge length", text: s.post("Content-Length: 99999999999999999999999\r\n", s.hidden()), want: "400"},
		{name: "the longest length", text: s.post("Content-Length: 9223372036854775807\r\n", jobBody), want: "413"},
		{name: "one beyond it", text: s.post("Content-Length: 9223372036854775808\r\n", jobBody), want: "400"},
		{name: "a length that wraps 64 bits", text: s.post("Content-Length: 18446744073709551616\r\n", s.hidden()), want: "400"},
		{name: "a length that wraps 32 bits", text: s.post("Content-Length: 4294967296\r\n", jobBody), want: "413"},
		{name: "an empty length", text: s.post("Content-Length:\r\n", s.hidden()), want: "400"},
		{name: "a length of letters", text: s.post("Content-Length: ten\r\n", s.hidden()), want: "400"},
		{name: "a length of other digits", text: s.post("Content-Length: ١٣\r\n", jobBody), want: "400"},
		{name: "a length with zeros before", text: s.post(length("000000%d"), jobBody), want: submitted},
		{name: "blanks around a length", text: s.post(length(" \t %d \t "), jobBody), want: submitted},
		{name: "a blank before the length's colon", text: s.post("Content-Length : 4\r\n", s.hidden()), want: "400"},
		{name: "a tab before the length's colon", text: s.post("Content-Length\t: 4\r\n", s.hidden()), want: "400"},
		{name: "a folded length", text: s.post("Content-Length:\r\n "+strings.TrimPrefix(contentLength(jobBody), "Content-Length: "), jobBody), want: "400"},
		{name: "a length with an underscore in its name", text: s.post("Content_Length: 4\r\n", ""), want: "400, mark 404"},
		{name: "a vertical tab before a length", text: s.post(length("\x0b%d"), jobBody), want: "400"},
		{name: "a short body", text: s.post("Content-Length: 400\r\n", jobBody), want: "400", open: true},
		{name: "a long body", text: s.post("Content-Length: 4\r\n", "null"+s.hidden()), want: "422, evil 404, mark 404"},
		{name: "no body", text: s.post("Content-Length: 0\r\n", ""), want: "400, mark 404"},
		{name: "no length and a body", text: s.post("", jobBody), want: "400, 400"},
	}
}

// ignored is the expected outcome if the name of a header field only resembles
// Transfer-Encoding. The gateway must ignore this field and use the length.
const ignored = "passed"

// codings returns requests whose bodies have both a length and chunks, or a
// transfer coding that is almost "chunked".
func (s requestBuilder) codings() []abuse {
	var list []abuse
	size := fmt.Sprintf("%06x\r\n", len(s.hidden()))
	// If a parser uses the chunks, the hidden request is after the body in the
	// first row, and inside the body in the second row. If a parser uses the
	// length, it is the reverse.
	add := func(name, coding, want string) {
		behind, within := lastChunk+s.hidden(), size+s.hidden()+"\r\n"+lastChunk
		rows := []abuse{
			{name: name + ", behind", text: s.post(coding+"\r\n"+contentLength(behind), behind), want: want},
			{name: name + ", within", text: s.post(coding+"\r\n"+contentLength(size), within), want: want},
		}
		if want == ignored {
			rows[0].want, rows[1].want = "400, mark 404", "400, evil 404, 400"
		}
		list = append(list, rows...)
	}
	add("chunks and a length", "Transfer-Encoding: chunked", "400")
	add("chunked in capitals", "TRANSFER-ENCODING: CHUNKED", "400")
	add("chunked after a tab", "Transfer-Encoding:\tchunked", "400")
	add("a tab behind chunked", "Transfer-Encoding: chunked\t", "400")
	add("chunked after a vertical tab", "Transfer-Encoding: \x0bchunked", "400")
	add("a form feed behind chunked", "Transfer-Encoding: chunked\x0c", "400")
	add("a zero byte behind chunked", "Transfer-Encoding: chunked\x00", "400")
	add("a bare return behind chunked", "Transfer-Encoding: chunked\r", "400")
	add("a byte of 0xA0 before chunked", "Transfer-Encoding: \xa0chunked", "501")
	add("chunked, chunked", "Transfer-Encoding: chunked, chunked", "501")
	add("identity, chunked", "Transfer-Encoding: identity, chunked", "501")
	add("chunked, identity", "Transfer-Encoding: chunked, identity", "501")
	add("gzip, chunked", "Transfer-Encoding: gzip, chunked", "501")
	add("chunked and a comma", "Transfer-Encoding: chunked,", "501")
	add("a comma and chunked", "Transfer-Encoding: ,chunked", "501")
	add("xchunked", "Transfer-Encoding: xchunked", "501")
	add("chunkedx", "Transfer-Encoding: chunkedx", "501")
	add("chunked with a parameter", "Transfer-Encoding: chunked;q=1", "501")
	add("chunked in quotes", `Transfer-Encoding: "chunked"`, "501")
	add("'chunked'", "Transfer-Encoding: 'chunked'", "501")
	add("identity", "Transfer-Encoding: identity", "501")
	add("an empty coding", "Transfer-Encoding:", "501")
	add("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "501")
	add("identity and chunked in two lines", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "501")
	add("a blank before the coding's colon", "Transfer-Encoding : chunked", "400")
	add("a blank before the coding", " Transfer-Encoding: chunked", "400")
	add("a folded coding", "Transfer-Encoding:\r\n chunked", "400")
	add("a coding folded into another field", "X-Other: 1\r\n Transfer-Encoding: chunked", "400")
	add("a coding behind a bare return", "X-Other: 1\rTransfer-Encoding: chunked", "400")
	add("a coding behind a zero byte", "X-Other: 1\x00Transfer-Encoding: chunked", "400")
	add("a coding with an underscore", "Transfer_Encoding: chunked", ignored)
	add("a coding without a colon", "Transfer-Encoding chunked", "400")
	add("a long s in chunked", "Tran\u017ffer-Encoding: chunked", "400")
	add("a coding that Connection lists", "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding", "400")
	hidden := chunk(s.hidden()) + lastChunk
	return append(list,
		abuse{name: "a length and chunks", text: s.post(contentLength(hidden)+"Transfer-Encoding: chunked\r\n", lastChunk+s.hidden()), want: "400"},
		abuse{name: "the length of the chunks", text: s.post(contentLength(hidden)+"Transfer-Encoding: chunked\r\n", hidden), want: "400"},
		abuse{name: "chunks in HTTP/1.0", text: s.line("POST /sched/"+harness.Version+"/job/submit HTTP/1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n", hidden), want: "400"},
		abuse{name: "chunks and a length in HTTP/1.0", text: s.line("POST /sched/"+harness.Version+"/job/submit HTTP/1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", lastChunk+s.hidden()), want: "400"},
		abuse{name: "chunks of a GET", text: s.get("Transfer-Encoding: chunked\r\n", hidden), want: "own 400"},
		abuse{name: "chunks of a DELETE", text: s.line("DELETE /sched/"+harness.Version+"/job/own-"+nonce+" HTTP/1.1", "Host: lab\r\nTransfer-Encoding: chunked\r\n", hidden), want: "own 400"},
		abuse{name: "a coding alone", text: s.post("Transfer-Encoding: identity\r\n", s.hidden()), want: "501"},
	)
}

// chunks returns requests whose bodies have malformed chunks.
func (s requestBuilder) chunks() []abuse {
	body := func(text string) string { return s.post("Transfer-Encoding: chunked\r\n", text) }
	d := fmt.Sprintf("%x", len(jobBody))
	ok := jobBody + "\r\n" + lastChunk
	return []abuse{
		{name: "an extension", text: body(d + ";name=value\r\n" + ok), want: submittedThenClosed},
		{name: "an extension in quotes", text: body(d + ";name=\"a;b\"\r\n" + ok), want: submittedThenClosed},
		{name: "an extension with a line end in quotes", text: body(d + ";name=\"a\r\nb\"\r\n" + ok), want: "400"},
		{name: "an extension with a bare line end", text: body(d + ";a\nb\r\n" + ok), want: "400"},
		{name: "an extension with a bare return", text: body(d + ";a\rb\r\n" + ok), want: "400"},
		{name: "an extension that hides a request", text: body("0;\n" + s.hidden() + lastChunk), want: "400"},
		{name: "a long extension", text: body(d + ";" + strings.Repeat("a", 20_000) + "\r\n" + ok), want: "400"},
		{name: "many extensions", text: body(strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\n \r\n", 100) + lastChunk), want: "400"},
		{name: "a chunk that is too long", text: body("ffffffffffffffff\r\n" + s.hidden()), want: "413", open: true},
		{name: "a chunk that wraps", text: body("10000000000000000\r\n" + s.hidden()), want: "400"},
		{name: "a chunk that nearly wraps", text: body("fffffffffffffffe\r\n" + s.hidden()), want: "413", open: true},
		{name: "a chunk beyond the limit", text: body("7fffffff\r\n" + s.hidden()), want: "413"},
		{name: "chunks beyond the limit together", text: body(chunk(jobBody) + "3200000\r\n" + s.hidden()), want: "413"},
		{name: "a chunk below zero", text: body("-1\r\n" + s.hidden()), want: "400"},
		{name: "a chunk with a plus", text: body("+" + d + "\r\n" + ok), want: "400"},
		{name: "a chunk of 0x", text: body("0x" + d + "\r\n" + ok), want: "400"},
		{name: "a chunk with an underscore", text: body("1_0\r\n" + ok), want: "400"},
		{name: "a chunk of no size", text: body("\r\n" + ok), want: "400"},
		{name: "a chunk of a blank", text: body(" \r\n" + ok), want: "400"},
		{name: "blanks behind a chunk's size", text: body(d + "  \r\n" + ok), want: "400"},
		{name: "a blank before an extension", text: body(d + " ;a\r\n" + ok), want: "400"},
		{name: "a zero byte in an extension", text: body(d + ";a=\x00\r\n" + ok), want: "400"},
		{name: "a control character in an extension", text: body(d + ";a=\x01\r\n" + ok), want: "400"},
		{name: "a blank before a chunk's size", text: body(" " + d + "\r\n" + ok), want: "400"},
		{name: "zeros before a chunk's size", text: body(strings.Repeat("0", 10) + d + "\r\n" + ok), want: submittedThenClosed},
		{name: "thousands of zeros before it", text: body(strings.Repeat("0", 5000) + d + "\r\n" + ok), want: "400"},
		{name: "thousands of zeros at the end", text: body(chunk(jobBody) + strings.Repeat("0", 5000) + "\r\n\r\n"), want: "400"},
		{name: "a size in letters", text: body("zz\r\n" + ok), want: "400"},
		{name: "a size and a bare line end", text: body(d + "\n" + ok), want: "400"},
		{name: "a size and two returns", text: body(d + "\r\r\n" + ok), want: "400"},
		{name: "no line end behind a chunk", text: body(d + "\r\n" + jobBody + lastChunk), want: "400"},
		{name: "a bare line end behind a chunk", text: body(d + "\r\n" + jobBody + "\n" + lastChunk), want: "400"},
		{name: "two letters behind a chunk", text: body(d + "\r\n" + jobBody + "XX" + lastChunk), want: "400"},
		{name: "a longer chunk than its size", text: body(d + "\r\n" + jobBody + s.hidden() + lastChunk), want: "400"},
		{name: "a zero byte in a size", text: body(d + "\x00\r\n" + ok), want: "400"},
		{name: "chunks without an end", text: body(chunk(jobBody)), want: "400", open: true},
		{name: "a chunk without its end", text: body("400\r\n" + jobBody), want: "400", open: true},
		{name: "nothing but a trailer", text: body("0\r\nX-Other: 1\r\n\r\n"), want: "400"},
		{name: "a trailer", text: body(chunk(jobBody) + "0\r\nX-Other: 1\r\n\r\n"), want: submittedThenClosed},
		{name: "a length in a trailer", text: body(chunk(jobBody) + "0\r\nContent-Length: 4\r\n\r\n"), want: submittedThenClosed},
		{name: "a coding in a trailer", text: body(chunk(jobBody) + "0\r\nTransfer-Encoding: chunked\r\n\r\n"), want: submittedThenClosed},
		{name: "a Host in a trailer", text: body(chunk(jobBody) + "0\r\nHost: elsewhere.invalid\r\n\r\n"), want: submittedThenClosed},
		{name: "a token in a trailer beside", text: body(chunk(jobBody) + "0\r\nX-SCHED-USER-TOKEN: x.y.z\r\n\r\n"), want: submittedThenClosed},
		{name: "the credential in a trailer", text: strings.Replace(body(chunk(jobBody)+"0\r\n"+s.auth+"\r\n"), s.auth, "", 1), want: "401"},
		{name: "the credential in a trailer that is announced", text: strings.Replace(s.post("Transfer-Encoding: chunked\r\nTrailer: X-SCHED-USER-TOKEN, X-SCHED-USER-NAME, Authorization\r\n", chunk(jobBody)+"0\r\n"+s.auth+"\r\n"), s.auth, "", 1), want: "401"},
		{name: "a length in a trailer that is announced", text: s.post("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", chunk(jobBody)+"0\r\nContent-Length: 4\r\n\r\n"), want: "400"},
		{name: "a trailer without a colon", text: body(chunk(jobBody) + "0\r\nX-Other\r\n\r\n"), want: "400"},
		{name: "a request in the place of a trailer", text: body(chunk(jobBody) + "0\r\n" + s.hidden()), want: "400"},
		{name: "a blank in a trailer's name", text: body(chunk(jobBody) + "0\r\nX-Other : 1\r\n\r\n"), want: "400"},
		{name: "a zero byte in a trailer", text: body(chunk(jobBody) + "0\r\nX-Other: \x00\r\n\r\n"), want: "400"},
		{name: "a folded trailer", text: body(chunk(jobBody) + "0\r\nX-Other: 1\r\n 2\r\n\r\n"), want: "400"},
		{name: "a bare line end behind a trailer", text: body(chunk(jobBody) + "0\r\nX-Other: 1\n\n"), want: "400"},
		{name: "a flood of trailers", text: body(chunk(jobBody) + "0\r\n" + strings.Repeat("X-Other: 1\r\n", 20_000) + "\r\n"), want: "400"},
		{name: "a long trailer", text: body(chunk(jobBody) + "0\r\nX-Other: " + strings.Repeat("a", 100_000) + "\r\n\r\n"), want: "400"},
		{name: "a chunk for each byte", text: body(chunkEachByte(jobBody) + lastChunk), want: "422"},
	}
}

func chunkEachByte(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(chunk(text[i : i+1]))
	}
	return b.String()
}
