package attack

import (
	"bytes"
	"compress/flate"
	"os/user"
	"strconv"
	"strings"
	"unicode/utf16"

	"schedrestd/integration/harness"
)

// claims returns tokens that differ in their dates and their users.
func (f *forger) claims() []row {
	var list []row
	refused := func(name, claims string) { list = append(list, f.bothAlgorithms(name, plainHeader, claims, false)...) }
	accepted := func(name, claims string) {
		list = append(list, f.bothAlgorithms("good "+name, plainHeader, claims, true)...)
	}

	invalidTimes := []string{`"$exp"`, `""`, `" "`, `"never"`, `null`, `true`, `false`, `[$exp]`, `[]`, `{}`, `{"n":$exp}`, `-1`, `-$exp`, `-0.0`, `$exp.5`, `$exp.000001`, `$exp.` + strings.Repeat("0", 30) + `1`, `1.5`, `1e-7`,
		`1e400`, `-1e400`, `1e18`, `99e99999999`, `1` + strings.Repeat("0", 400), `-1` + strings.Repeat("0", 400), `0.` + strings.Repeat("0", 400) + `1`,
		`253402300800`, `9223372036854775807`, `9223372036854775808`, `18446744073709551616`, `NaN`, `Infinity`, `0x7fffffff`, `0$exp`, `+$exp`, `$exp.`, `.5`, `1_000_000_000_000`, `$expL`}
	for _, exp := range append(invalidTimes, `0`, `-0`, `1`, `$past`, `$past.0`, `1e9`) {
		refused("exp "+brief(exp), `{"iat":$iat,"exp":`+exp+`,"sun":"$user"}`)
	}
	for _, iat := range append(invalidTimes, `$later`, `4102444800`) {
		refused("iat "+brief(iat), `{"iat":`+iat+`,"exp":$exp,"sun":"$user"}`)
	}
	for _, nbf := range append(invalidTimes, `$later`, `$exp`) {
		refused("nbf "+brief(nbf), `{"iat":$iat,"exp":$exp,"nbf":`+nbf+`,"sun":"$user"}`)
	}
	refused("no exp", `{"iat":$iat,"sun":"$user"}`)
	refused("no iat", `{"exp":$exp,"sun":"$user"}`)
	refused("no user", `{"iat":$iat,"exp":$exp}`)
	refused("sub is not sun", `{"iat":$iat,"exp":$exp,"sub":"$user","name":"$user","preferred_username":"$user"}`)
	refused("nothing", `{}`)
	accepted("exp with a whole fraction", `{"iat":$iat.0,"exp":$exp.0,"sun":"$user"}`)
	accepted("exp with an exponent", `{"iat":1e9,"exp":2.5e11,"sun":"$user"}`)
	accepted("nbf in the past", `{"nbf":$past,"iat":$iat,"exp":$exp,"sun":"$user"}`)
	accepted("other claims", `{"iss":"x","aud":["a","b"],"jti":1e400,"x":{"sun":"nobody","exp":1},"iat":$iat,"exp":$exp,"sun":"$user"}`)

	for name, claims := range map[string]string{
		"exp twice, the first past": `"exp":$past,"exp":$exp,"iat":$iat,"sun":"$user"`, "exp twice, the last past": `"exp":$exp,"exp":$past,"iat":$iat,"sun":"$user"`,
		"exp twice, the same": `"exp":$exp,"exp":$exp,"iat":$iat,"sun":"$user"`, "exp twice, escaped": `"exp":$past,"\u0065xp":$exp,"iat":$iat,"sun":"$user"`,
		"exp twice, escaped last": `"exp":$exp,"e\u0078p":$past,"iat":$iat,"sun":"$user"`, "iat twice": `"iat":$iat,"iat":$iat,"exp":$exp,"sun":"$user"`,
		"nbf twice": `"nbf":$later,"nbf":$past,"iat":$iat,"exp":$exp,"sun":"$user"`, "sun twice": `"sun":"nobody","sun":"$user","iat":$iat,"exp":$exp`,
		"sun twice, escaped": `"s\u0075n":"nobody","sun":"$user","iat":$iat,"exp":$exp`, "sun twice, the same": `"sun":"$user","sun":"$user","iat":$iat,"exp":$exp`,
		"username twice": `"username":"$user","username":"nobody","iat":$iat,"exp":$exp`, "another claim twice": `"x":1,"x":2,"iat":$iat,"exp":$exp,"sun":"$user"`,
		"exp as Exp": `"Exp":$exp,"iat":$iat,"sun":"$user"`, "exp as EXP": `"EXP":$exp,"iat":$iat,"sun":"$user"`, "exp past, Exp not": `"exp":$past,"Exp":$exp,"EXP":$exp,"iat":$iat,"sun":"$user"`,
		"exp with a blank": `"exp ":$exp,"iat":$iat,"sun":"$user"`, "exp with a NUL": `"exp\u0000":$exp,"iat":$iat,"sun":"$user"`, "iat as Iat": `"Iat":$iat,"exp":$exp,"sun":"$user"`,
		"sun as Sun": `"Sun":"$user","iat":$iat,"exp":$exp`, "sun as SUN": `"SUN":"$user","iat":$iat,"exp":$exp`, "sun with a long s": `"ſun":"$user","iat":$iat,"exp":$exp`,
		"username as userName": `"userName":"$user","iat":$iat,"exp":$exp`, "sun is no user, username is": `"sun":"no-such-user","username":"$user","iat":$iat,"exp":$exp`,
		"sun is null, username is a user": `"sun":null,"username":"$user","iat":$iat,"exp":$exp`, "sun is empty, username is a user": `"sun":"","username":"$user","iat":$iat,"exp":$exp`,
	} {
		refused(name, "{"+claims+"}")
	}
	accepted("username alone", `{"iat":$iat,"exp":$exp,"username":"$user"}`)
	accepted("sun goes before username", `{"iat":$iat,"exp":$exp,"username":"no-such-user","sun":"$user"}`)
	accepted("claims in other letters mean nothing", `{"iat":$iat,"exp":$exp,"sun":"$user","SUN":"no-such-user","Exp":1,"ſun":"root\u0000"}`)
	accepted("escapes", `{"\u0069at":$iat,"e\u0078p":$exp,"s\u0075n":"$user"}`)

	users := []string{`""`, `" "`, `0`, `1`, `-1`, `4294967295`, `null`, `true`, `["$user"]`, `[]`, `{"name":"$user"}`, `{}`, `"$user\u0000"`, `"\u0000$user"`, `"$user\u0000x"`, `"$user "`, `" $user"`,
		`"\t$user"`, `"$user\n"`, `"$user\r\n"`, `"$user\nroot"`, `"../$user"`, `"./$user"`, `"$user/"`, `"/$user"`, `"$user:x"`, `"$user:x:0:0"`, `"$user,$user"`, `"$user;id"`, `"$(id)"`, `"$user'--"`,
		`"$user\u200b"`, `"\u202e$user"`, `"\ufeff$user"`, `"r\u043eot"`, `"ｒｏｏｔ"`, `"ro\u0301ot"`, `"-$user"`, `"-x"`, `"--"`, `"+$user"`, `"*"`, `"%"`, `"$user@localhost"`, `"DOMAIN\\$user"`,
		`"0"`, `"00"`, `"0x0"`, `"-0"`, `"+0"`, `"1"`, `"4294967296"`, `"4294967295"`, `"65534"`, `"#0"`, `"uid=0"`, `"$user."`, `".$user"`, `"."`, `".."`, `"no-such-user"`, `"\ud800"`,
		`"` + strings.Repeat("x", 64) + `"`, `"` + strings.Repeat("x", 65) + `"`, `"` + strings.Repeat("x", 5000) + `"`, `"$user` + strings.Repeat(`\u0000`, 200) + `"`}
	if u, err := user.Lookup(f.user); err == nil {
		users = append(users, `"`+u.Uid+`"`, u.Uid)
	}
	if u, err := user.Lookup("nobody"); err == nil && u.Uid == "65534" { // the kernel shows this user for every uid that it can't map
		users = append(users, `"nobody"`)
	}
	if upper := strings.ToUpper(f.user); upper != f.user {
		users = append(users, `"`+upper+`"`)
	}
	for _, sun := range users {
		refused("sun "+brief(sun), `{"iat":$iat,"exp":$exp,"sun":`+sun+`}`)
	}
	for _, name := range []string{`""`, `"0"`, `null`, `["$user"]`, `"$user\u0000"`, `"no-such-user"`} {
		refused("username "+name, `{"iat":$iat,"exp":$exp,"username":`+name+`}`)
	}
	return list
}

// payloads returns tokens whose payload is not exactly one JSON object.
func (f *forger) payloads() []row {
	var list []row
	plain := f.fill(plainClaims, "")
	inner := strings.TrimSuffix(plain, "}")
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, 9)
	harness.Must(f.t, err)
	w.Write([]byte(plain))
	harness.Must(f.t, w.Close())
	for _, p := range []struct{ name, claims string }{
		{"empty", ""}, {"a blank", " "}, {"null", "null"}, {"a list", "[]"}, {"a text", `"x"`}, {"a number", "1"}, {"a list of it", "[" + plain + "]"}, {"a text of it", f.json(plain)},
		{"twice", plain + plain}, {"twice, with a line end", plain + "\n" + plain}, {"with a text behind", plain + "x"}, {"with a NUL behind", plain + "\x00"}, {"with a brace more", plain + "}"},
		{"cut", inner}, {"with a comma more", inner + ",}"}, {"with a comment", inner + "/**/}"}, {"with single quotes", strings.ReplaceAll(plain, `"`, `'`)},
		{"with a byte order mark", "\ufeff" + plain}, {"in UTF-16, little end first", encodeUTF16(plain, false, false)}, {"in UTF-16, big end first", encodeUTF16(plain, true, false)},
		{"in UTF-16 with a mark", encodeUTF16(plain, false, true)}, {"in UTF-16 with a mark, big end first", encodeUTF16(plain, true, true)}, {"in UTF-32", strings.ReplaceAll(encodeUTF16(plain, true, false), "\x00", "\x00\x00\x00")},
		{"not UTF-8", inner + ",\"x\":\"\xff\xfe\"}"}, {"overlong UTF-8", strings.Replace(plain, `"sun":"`, "\"sun\":\"\xc1\xb2", 1)}, {"a surrogate in UTF-8", inner + ",\"x\":\"\xed\xa0\x80\"}"},
		{"a control character in a text", inner + ",\"x\":\"\x01\"}"}, {"a line end in a text", inner + ",\"x\":\"\n\"}"}, {"a vertical tab between", strings.Replace(plain, ",", ",\v", 1)}, {"a broken escape", inner + `,"x":"\u12"}`},
		{"5000 levels, not closed", inner + `,"x":` + strings.Repeat("[", 5000)}, {"10 000 levels", inner + `,"x":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + "}"},
		{"1000 objects, not closed", inner + `,"x":` + strings.Repeat(`{"x":`, 1000)}, {"deflated", packed.String()}, {"form encoded", "iat=1&exp=9999999999&sun=" + f.user},
		{"a token", f.validToken("HS256")}, {"a token as text", f.json(f.validToken("HS256"))}, {"XML", "<sun>" + f.user + "</sun>"}, {"YAML", strings.NewReplacer("{", "", "}", "", ",", "\n", ":", ": ").Replace(plain)},
	} {
		list = append(list, f.bothAlgorithms("payload: "+p.name, plainHeader, p.claims, false)...)
	}
	for _, alg := range []string{"HS256", "RS256"} {
		list = append(list, row{name: alg + " a token within a token", token: f.token(alg, `{"alg":"$alg","cty":"JWT"}`, f.validToken(alg), f.ownSigner(alg)), signedWith: alg},
			row{name: alg + " deflated, and says so", token: f.token(alg, `{"alg":"$alg","zip":"DEF"}`, packed.String(), f.ownSigner(alg)), signedWith: alg})
	}
	list = append(list, f.bothAlgorithms("good payload with blanks around", plainHeader, " \t\r\n"+plain+" \n", true)...)
	return append(list, f.bothAlgorithms("good payload with 1000 levels", plainHeader, inner+`,"x":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+"}", true)...)
}

// encodeUTF16 returns text in UTF-16.
func encodeUTF16(text string, big, mark bool) string {
	if mark {
		text = "\ufeff" + text
	}
	var out []byte
	for _, u := range utf16.Encode([]rune(text)) {
		if big {
			out = append(out, byte(u>>8), byte(u))
		} else {
			out = append(out, byte(u), byte(u>>8))
		}
	}
	return string(out)
}

// edits returns tokens that were changed after they were signed, some of them
// by a single bit.
func (f *forger) edits() []row {
	var list []row
	for _, alg := range []string{"HS256", "RS256"} {
		parts := strings.Split(f.validToken(alg), ".")
		head, payload, signature := parts[0], parts[1], parts[2]
		add := func(name string, parts ...string) {
			list = append(list, row{name: alg + " " + name, token: strings.Join(parts, ".")})
		}
		encode := func(claims string) string { return base64url([]byte(f.fill(claims, alg))) }
		add("with another user", head, encode(strings.Replace(plainClaims, "$user", "nobody", 1)), signature)
		add("with a longer life", head, encode(strings.Replace(plainClaims, "$exp", "4102444800", 1)), signature)
		add("with one blank more", head, encode(strings.Replace(plainClaims, ",", ", ", 1)), signature)
		add("with one claim more", head, encode(strings.Replace(plainClaims, "}", `,"x":1}`, 1)), signature)
		add("with the header of another", encode(`{"typ":"JWT","alg":"$alg"}`), payload, signature)
		add("with a header that says none", encode(`{"alg":"none","typ":"JWT"}`), payload, signature)
		add("with a header that says none, unsigned", encode(`{"alg":"none","typ":"JWT"}`), payload, "")
		add("with header and payload swapped", payload, head, signature)
		for i := 0; i < len(payload); i += 9 {
			add("with letter "+strconv.Itoa(i)+" of the payload changed", head, flipBit(payload, i), signature)
		}
		for i := 0; i < len(head); i += 9 {
			add("with letter "+strconv.Itoa(i)+" of the header changed", flipBit(head, i), payload, signature)
		}
		for _, i := range []int{0, 1, len(signature) / 3, len(signature) / 2, len(signature) - 2, len(signature) - 1} {
			add("with letter "+strconv.Itoa(i)+" of the signature changed", head, payload, flipBit(signature, i))
		}
		add("with a letter less", head, payload, signature[:len(signature)-1])
		add("with a letter more", head, payload, signature+"A")
		add("with four letters more", head, payload, signature+"AAAA")
	}
	// Each of these tokens combines segments of two correctly signed tokens.
	expired := strings.Split(f.token("HS256", plainHeader, `{"iat":$iat,"exp":$past,"sun":"$user"}`, f.ownSigner("HS256")), ".")
	good, public := strings.Split(f.validToken("HS256"), "."), strings.Split(f.validToken("RS256"), ".")
	for name, parts := range map[string][]string{
		"an expired token with a good one's signature": {expired[0], expired[1], good[2]}, "an expired token's signature under a good one": {good[0], good[1], expired[2]},
		"RS256 header, HS256 rest": {public[0], good[1], good[2]}, "HS256 header, RS256 rest": {good[0], public[1], public[2]},
		"RS256 with the HS256 signature": {public[0], public[1], good[2]}, "HS256 with the RS256 signature": {good[0], good[1], public[2]},
	} {
		list = append(list, row{name: name, token: strings.Join(parts, ".")})
	}
	return list
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// flipBit inverts the lowest bit of letter i of a base64url text, and returns
// the result.
func flipBit(text string, i int) string {
	return text[:i] + string(alphabet[strings.IndexByte(alphabet, text[i])^1]) + text[i+1:]
}
