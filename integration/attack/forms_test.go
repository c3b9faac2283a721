package attack

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"schedrestd/integration/harness"
)

// signatures returns tokens with invalid signatures. Some signatures were made
// without the key, some with another algorithm or over another text, and some
// were altered.
func (f *forger) signatures() []row {
	var list []row
	hs := func(name string, sign signer) {
		list = append(list, row{name: "HS256 " + name, token: f.token("HS256", plainHeader, plainClaims, sign)})
	}
	rs := func(name string, sign signer) {
		list = append(list, row{name: "RS256 " + name, token: f.token("RS256", plainHeader, plainClaims, sign)})
	}
	for _, n := range []int{0, 1, 31, 32, 33, 64, 255, 256, 257, 512} {
		for _, fill := range []byte{0, 1, 255} {
			hs(fmt.Sprintf("signed with %d bytes %02x", n, fill), constant(bytes.Repeat([]byte{fill}, n)))
			rs(fmt.Sprintf("signed with %d bytes %02x", n, fill), constant(bytes.Repeat([]byte{fill}, n)))
		}
	}
	// These keys resemble the real key, or are used by careless sites.
	sum := sha256.Sum256(f.secret)
	for name, secret := range map[string][]byte{
		"no secret": nil, "zeros": make([]byte, 32), "the secret's beginning": f.secret[:31], "the secret's end": f.secret[1:], "the secret and a line end": append(bytes.Clone(f.secret), '\n'),
		"the secret in hexadecimal": []byte(hex.EncodeToString(f.secret)), "the secret in base64": []byte(base64.StdEncoding.EncodeToString(f.secret)), "the secret's hash": sum[:],
		"the secret reversed": reverse(f.secret), "secret": []byte("secret"), "your-256-bit-secret": []byte("your-256-bit-secret"), "the user's name": []byte(f.user), "SCHED_JWT": []byte("daemon"),
	} {
		hs("signed with "+name, mac(crypto.SHA256, secret))
	}
	for n := range map[int]bool{1: true, 16: true, 31: true} {
		hs(fmt.Sprintf("signed, cut to %d bytes", n), func(s string) []byte { return f.ownSigner("HS256")(s)[:n] })
	}
	hs("signed, and a byte more", func(s string) []byte { return append(f.ownSigner("HS256")(s), 0) })
	hs("signed with a hash alone", func(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] })
	hs("signed with a hash of secret and text", func(s string) []byte { h := sha256.Sum256(append(bytes.Clone(f.secret), s...)); return h[:] })
	hs("signed with another hash, cut", func(s string) []byte { return mac(crypto.SHA512, f.secret)(s)[:32] })
	hs("with the signature in hexadecimal", func(s string) []byte { return []byte(hex.EncodeToString(f.ownSigner("HS256")(s))) })
	hs("signed over the payload alone", func(s string) []byte { _, p, _ := strings.Cut(s, "."); return f.ownSigner("HS256")(p) })
	hs("signed over the decoded text", func(string) []byte {
		return f.ownSigner("HS256")(f.fill(plainHeader, "HS256") + "." + f.fill(plainClaims, ""))
	})

	n := f.providerKey.N
	raw := func(x *big.Int) []byte { return x.FillBytes(make([]byte, 256)) }
	rs("signed with n", constant(raw(n)))
	rs("signed with n-1", constant(raw(new(big.Int).Sub(n, big.NewInt(1)))))
	rs("signed as PSS", f.pss(f.providerKey))
	rs("signed with SHA-384", f.pkcs1(crypto.SHA384, f.providerKey))
	rs("signed with SHA-512", f.pkcs1(crypto.SHA512, f.providerKey))
	rs("signed with SHA-1", func(s string) []byte { return f.signRaw(crypto.SHA1, sha1.New().Sum(nil)) })
	rs("signed with no hash named", func(s string) []byte { h := sha256.Sum256([]byte(s)); return f.signRaw(0, h[:]) })
	rs("signed with a zero in front", func(s string) []byte { return append([]byte{0}, f.ownSigner("RS256")(s)...) })
	rs("signed with a zero behind", func(s string) []byte { return append(f.ownSigner("RS256")(s), 0) })
	rs("signed, plus n", func(s string) []byte {
		return new(big.Int).Add(n, new(big.Int).SetBytes(f.ownSigner("RS256")(s))).FillBytes(make([]byte, 257))
	})
	rs("signed, negated", func(s string) []byte { return raw(new(big.Int).Sub(n, new(big.Int).SetBytes(f.ownSigner("RS256")(s)))) })
	rs("signed, reversed", func(s string) []byte { return reverse(f.ownSigner("RS256")(s)) })
	rs("with the padded hash alone", func(s string) []byte {
		h := sha256.Sum256([]byte(s))
		return append(append(append([]byte{0, 1}, bytes.Repeat([]byte{255}, 221)...), 0), h[:]...)
	})
	rs("signed over the payload alone", func(s string) []byte { _, p, _ := strings.Cut(s, "."); return f.ownSigner("RS256")(p) })
	return list
}

// signRaw returns the provider's signature of arbitrary bytes.
func (f *forger) signRaw(hash crypto.Hash, digest []byte) []byte {
	s, err := rsa.SignPKCS1v15(nil, f.providerKey, hash, digest)
	harness.Must(f.t, err)
	return s
}

func reverse(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[len(b)-1-i] = c
	}
	return out
}

// forms returns three groups of texts: tokens that do not have three segments,
// texts in formats other than JWT, and tokens whose length is near or above the
// maximum.
func (f *forger) forms() []row {
	good := f.validToken("HS256")
	parts := strings.Split(good, ".")
	head, payload, signature := parts[0], parts[1], parts[2]
	flattened := f.json(map[string]any{"protected": head, "payload": payload, "signature": signature})
	general := f.json(map[string]any{"payload": payload, "signatures": []any{map[string]any{"protected": head, "signature": signature}}})
	enc := base64url([]byte(`{"alg":"dir","enc":"A256GCM"}`))
	encRSA := base64url([]byte(`{"alg":"RSA-OAEP","enc":"A256GCM","zip":"DEF"}`))
	list := []row{
		{name: "no signature", token: head + "." + payload + "."}, {name: "two segments", token: head + "." + payload}, {name: "one segment", token: head},
		{name: "no payload", token: head + ".." + signature}, {name: "no header", token: "." + payload + "." + signature}, {name: "two dots", token: ".."}, {name: "a dot", token: "."},
		{name: "four segments", token: good + "."}, {name: "four segments, filled", token: good + "." + signature}, {name: "a dot in front", token: "." + good}, {name: "six segments", token: good + "." + good},
		{name: "JWE, direct", token: enc + ".." + strings.Repeat("A", 16) + "." + payload + "." + strings.Repeat("A", 22)},
		{name: "JWE, to the provider's key", token: encRSA + "." + strings.Repeat("A", 342) + "." + strings.Repeat("A", 16) + "." + payload + "." + strings.Repeat("A", 22)},
		{name: "JWE of nothing", token: "...."}, {name: "a JWE's header on a signed token", token: f.token("dir", `{"alg":"dir","enc":"A256GCM"}`, plainClaims, f.ownSigner("HS256"))},
		{name: "JSON, flattened", token: flattened}, {name: "JSON, general", token: general}, {name: "JSON of the claims", token: f.fill(plainClaims, "")},
		{name: "a token in a token's place", token: base64url([]byte(good))}, {name: "twice, with a comma", token: good + "," + good}, {name: "twice, with a blank", token: good + " " + good},
		{name: "with Bearer", token: "Bearer " + good}, {name: "with its name", token: "SCHED_JWT=" + good}, {name: "in quotes", token: `"` + good + `"`}, {name: "in brackets", token: "<" + good + ">"},
		{name: "10 000 segments", token: strings.Repeat(".", 9999)}, {name: "10 000 segments, filled", token: strings.Repeat("A.", 9999) + "A"}, {name: "8000 segments", token: strings.Repeat(".", 7999)},
		{name: "10 000 segments behind a good token", token: good + strings.Repeat(".", 9999)},
		{name: "a text", token: "good day"}, {name: "root", token: "root"}, {name: "a path", token: "/etc/passwd"}, {name: "a letter", token: "A"}, {name: "8 kB of letters", token: strings.Repeat("A", 8000)},
		{name: "a byte or three over 24 kB", token: f.longToken(24<<10 + 3), signedWith: "HS256"}, {name: "25 kB", token: f.longToken(25 << 10), signedWith: "HS256"}, {name: "30 kB", token: f.longToken(30 << 10), signedWith: "HS256"},
		{name: "60 kB", token: f.longToken(60 << 10), signedWith: "HS256", status: http.StatusRequestHeaderFieldsTooLarge},
		{name: "a 25 kB header", token: f.token("HS256", `{"alg":"$alg","x":"`+strings.Repeat("x", 19<<10)+`"}`, plainClaims, f.ownSigner("HS256")), signedWith: "HS256"},
		{name: "9 kB", token: f.longToken(9 << 10), signedWith: "HS256", accepted: true}, {name: "nearly 24 kB", token: f.longToken(24<<10 - 2), signedWith: "HS256", accepted: true},
	}
	return list
}

// longToken returns a correctly signed token of n-2 to n bytes.
func (f *forger) longToken(n int) string {
	best := ""
	for fill := n*3/4 - 250; ; fill++ {
		token := f.token("HS256", plainHeader, strings.Replace(plainClaims, "}", `,"x":"`+strings.Repeat("x", fill)+`"}`, 1), f.ownSigner("HS256"))
		if len(token) > n {
			return best
		}
		best = token
	}
}

// spellings returns tokens whose base64url is spelled unusually. Only one
// spelling of a token may be accepted, because tokens are cached and counted by
// their text.
func (f *forger) spellings() []row {
	var list []row
	for _, alg := range []string{"HS256", "RS256"} {
		good := f.validToken(alg)
		for !strings.Contains(good, "-") || !strings.Contains(good, "_") { // some token contains both
			f.now = f.now.Add(1)
			good = f.token(alg, plainHeader, plainClaims[:len(plainClaims)-1]+fmt.Sprintf(`,"x":%d}`, len(list)+f.now.Nanosecond()), f.ownSigner(alg))
		}
		parts := strings.Split(good, ".")
		head, payload, signature := parts[0], parts[1], parts[2]
		add := func(name, token string, status int) {
			list = append(list, row{name: alg + " " + name, token: token, status: status, signedWith: alg})
		}
		add("with + for -", strings.ReplaceAll(good, "-", "+"), 0)
		add("with / for _", strings.ReplaceAll(good, "_", "/"), 0)
		for _, pad := range []string{"=", "==", "===", "====", "%3D", "%3d%3d", ".", "~", "*", "!", ";", ",", "é", "\xff", "\u2028", "\u200b", "\ufeff"} {
			add("padded with "+pad, good+pad, 0)
			add("header padded with "+pad, head+pad+"."+payload+"."+signature, 0)
			add("payload padded with "+pad, head+"."+payload+pad+"."+signature, 0)
		}
		for _, c := range []string{" ", "\t"} {
			add(fmt.Sprintf("with %q within", c), head+"."+payload[:8]+c+payload[8:]+"."+signature, 0)
			add(fmt.Sprintf("with %q before a dot", c), head+c+"."+payload+"."+signature, 0)
			// In a header's value, blanks at the beginning and the end have no
			// meaning (RFC 9110, 5.5). In a message to a daemon they are part
			// of the token.
			add(fmt.Sprintf("with %q in front", c), c+good, http.StatusOK)
			add(fmt.Sprintf("with %q behind", c), good+c, http.StatusOK)
		}
		for _, c := range []string{"\r", "\x00", "\x01", "\x0b", "\x0c", "\x1b", "\x7f"} {
			add(fmt.Sprintf("with %q within", c), head+"."+payload[:8]+c+payload[8:]+"."+signature, http.StatusBadRequest)
			add(fmt.Sprintf("with %q behind", c), good+c, http.StatusBadRequest)
		}
		add("folded within", head+"."+payload[:8]+"\r\n "+payload[8:]+"."+signature, http.StatusBadRequest) // a folded header field
		add("with stray bits in the signature's last letter", head+"."+payload+"."+setStrayBits(signature), 0)
		// Here the signer has signed the unusual spelling, so the signature is
		// correct. The token must be refused nevertheless, because only one
		// spelling of a token may be accepted.
		for name, respell := range map[string]func(string) string{"padded": padded, "with stray bits": setStrayBits, "with a line end": func(s string) string { return s[:4] + "\n" + s[4:] }, "in the other alphabet": stdAlphabet} {
			// The encodings of '~~~' and '???' contain characters that differ
			// between base64 and base64url.
			h, p := base64url([]byte(f.fill(`{"alg":"$alg","x":"~~~???"}`, alg))), base64url([]byte(f.fill(`{"iat":$iat,"exp":$exp,"sun":"$user","x":"~~~???"}`, alg)))
			for segment, signed := range map[string]string{"header": respell(h) + "." + p, "payload": h + "." + respell(p)} {
				if signed == h+"."+p {
					continue // this spelling changes nothing
				}
				r := row{name: alg + " signed over a " + segment + " " + name, token: signed + "." + base64url(f.ownSigner(alg)(signed)), signedWith: alg}
				if name == "with a line end" {
					r.status = http.StatusBadRequest
				}
				list = append(list, r)
			}
		}
	}
	return list
}

func padded(text string) string { return text + strings.Repeat("=", (4-len(text)%4)%4) }

// setStrayBits sets the lowest bit of the last letter, if no decoded byte
// contains that bit.
func setStrayBits(text string) string {
	if len(text)%4 == 0 {
		return text
	}
	last := strings.IndexByte(alphabet, text[len(text)-1])
	return text[:len(text)-1] + string(alphabet[last|1])
}

// stdAlphabet returns text in base64's other alphabet.
func stdAlphabet(text string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(text) }
