package http1

// isToken marks the bytes that methods and field names may contain (RFC 9110,
// 5.6.2). isName marks the bytes that a host name may contain without
// percent-encoding (RFC 3986, 3.2.2).
var isToken, isName = table("!#$%&'*+-.^_`|~"), table("-._~!$&'()*+,;=")

// isText marks the bytes that a field's value may contain: the tab, and all
// bytes that are not control characters (RFC 9110, 5.5).
var isText = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != 0x7f || c == '\t'
	}
	return t
}()

// table returns a table that marks letters, digits, and the bytes in extra.
func table(extra string) (t [256]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	for _, c := range []byte(extra) {
		t[c] = true
	}
	return t
}

func areAll(t *[256]bool, text []byte) bool {
	for _, c := range text {
		if !t[c] {
			return false
		}
	}
	return true
}

func areTokens(text []byte) bool { return len(text) > 0 && areAll(&isToken, text) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// hexValue returns the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c&0x0f + 9
}
