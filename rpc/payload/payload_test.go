package payload

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/cloudflare/circl/xof/k12"
)

// kangarooTwelve returns 32 bytes of output of the library that this package uses.
func kangarooTwelve(message, customisation []byte) []byte {
	sum := make([]byte, 32)
	k12.Draft10Sum(sum, message, customisation)
	return sum
}

// TestKangarooTwelve checks the test vectors in RFC 9861, section 5, for KT128
// with 32 bytes of output. For long inputs, the library uses parallel code that
// differs between machines.
func TestKangarooTwelve(t *testing.T) {
	seventeen := func(n float64) []byte { return pattern(int(math.Pow(17, n))) }
	tests := []struct {
		name                   string
		message, customisation []byte
		want                   string
	}{
		{"empty", nil, nil, "1ac2d450fc3b4205d19da7bfca1b37513c0803577ac7167f06fe2ce1f0ef39e5"},
		{"17^0 bytes", seventeen(0), nil, "2bda92450e8b147f8a7cb629e784a058efca7cf7d8218e02d345dfaa65244a1f"},
		{"17^1 bytes", seventeen(1), nil, "6bf75fa2239198db4772e36478f8e19b0f371205f6a9a93a273f51df37122888"},
		{"17^2 bytes", seventeen(2), nil, "0c315ebcdedbf61426de7dcf8fb725d1e74675d7f5327a5067f367b108ecb67c"},
		{"17^3 bytes", seventeen(3), nil, "cb552e2ec77d9910701d578b457ddf772c12e322e4ee7fe417f92c758f0d59d0"},
		{"17^4 bytes", seventeen(4), nil, "8701045e22205345ff4dda05555cbb5c3af1a771c2b89baef37db43d9998b9fe"},
		{"17^5 bytes", seventeen(5), nil, "844d610933b1b9963cbdeb5ae3b6b05cc7cbd67ceedf883eb678a0a8e0371682"},
		{"17^6 bytes", seventeen(6), nil, "3c390782a8a4e89fa6367f72feaaf13255c8d95878481d3cd8ce85f58e880af8"},
		{"customised", nil, pattern(1), "fab658db63e94a246188bf7af69a133045f46ee984c56e3c3328caaf1aa1a583"},
		{"1 byte, customised", ff(1), pattern(41), "d848c5068ced736f4462159b9867fd4c20b808acc3d5bc48e0b06ba0a3762ec4"},
		{"3 bytes, customised", ff(3), pattern(41 * 41), "c389e5009ae57120854c2e8c64670ac01358cf4c1baf89447a724234dc7ced74"},
		{"7 bytes, customised", ff(7), pattern(41 * 41 * 41), "75d2f86a2e644566726b4fbcfc5657b9dbcf070c7b0dca06450ab291d7443bcf"},
		{"a byte less than a chunk", pattern(8191), nil, "1b577636f723643e990cc7d6a659837436fd6a103626600eb8301cd1dbe553d6"},
		{"a chunk", pattern(8192), nil, "48f256f6772f9edfb6a8b661ec92dc93b95ebd05a08a17b39ae3490870c926c3"},
		{"a chunk, customised", pattern(8192), pattern(8189), "3ed12f70fb05ddb58689510ab3e4d23c6c6033849aa01e1d8c220a297fedcd0b"},
		{"a chunk, customised by one more", pattern(8192), pattern(8190), "6a7c1b6a5cd0d8c9ca943a4a216cc64604559a2ea45f78570a15253d67ba00ae"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := hex.EncodeToString(kangarooTwelve(tt.message, tt.customisation)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// pattern returns ptn(n) of the RFC.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func ff(n int) []byte { return bytes.Repeat([]byte{0xff}, n) }

// TestOf checks that a payload begins with the number of the hash
// function, and that it depends on both the body and the message's number.
func TestOf(t *testing.T) {
	p := Of(0x1234, []byte("body"))
	if want := append([]byte{2}, kangarooTwelve([]byte("body"), []byte{0x12, 0x34})...); !bytes.Equal(p, want) {
		t.Errorf("got %x, want %x", p, want)
	}
	for name, other := range map[string][]byte{
		"body": Of(0x1234, []byte("bodY")), "number": Of(0x3412, []byte("body")), "no body": Of(0x1234, nil),
	} {
		if bytes.Equal(p, other) {
			t.Errorf("another %s has the same payload", name)
		}
	}
}

// TestParts checks that the payload of a body that comes in parts is that of the whole
// body.
func TestParts(t *testing.T) {
	body := pattern(100_000)
	for _, size := range []int{1, 100, 8191, 8192, 24 << 10} {
		h := New(4003)
		for rest := body; len(rest) > 0; {
			n := min(size, len(rest))
			h.Write(rest[:n])
			rest = rest[n:]
		}
		if got := h.Payload(); !bytes.Equal(got, Of(4003, body)) {
			t.Errorf("parts of %d bytes: %x", size, got)
		}
	}
}
