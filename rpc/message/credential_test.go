package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/rpc/codec"
)

// TestEncodeWithCredential checks that the function that creates the credential
// gets the same body that is sent after the credential. This must hold for any
// length of credential and body.
func TestEncodeWithCredential(t *testing.T) {
	body := &NodeInfoSingleRequest{NodeName: strings.Repeat("n", 5000)}
	for v := codec.Oldest; v <= codec.Newest; v++ {
		for _, size := range []int{0, 1, 250, frontSpace - 31, frontSpace - 30, frontSpace - 29, frontSpace - 28, frontSpace - 27, frontSpace, 8 << 10, 100 << 10} {
			want := Credential{Plugin: PluginMunge, Text: strings.Repeat("x", size)}
			var hashed []byte
			b, err := EncodeWithCredential(v, FlagPersistent, RequestNodeInfoSingle, func(kind Type, body []byte) (*Credential, error) {
				if kind != RequestNodeInfoSingle {
					t.Errorf("credential for message %d", kind)
				}
				hashed = bytes.Clone(body)
				return &want, nil
			}, body)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ParseFrame(b[4:])
			if err != nil || f.Header.Flags != FlagPersistent || !bytes.Equal(hashed, f.Body) {
				t.Fatalf("protocol %d, credential of %d bytes: flags %x, %v; the credential is for this body: %v", v, size, f.Header.Flags, err, bytes.Equal(hashed, f.Body))
			}
			if diff := cmp.Diff(want, f.Credential); diff != "" {
				t.Errorf("protocol %d: %s", v, diff)
			}
			var back NodeInfoSingleRequest
			if err := f.Decode(&back); err != nil || back.NodeName != body.NodeName {
				t.Errorf("protocol %d, credential of %d bytes: %v", v, size, err)
			}
			if length := binary.BigEndian.Uint32(b); int(length) != len(b)-4 {
				t.Errorf("length %d before %d bytes", length, len(b)-4)
			}
		}
	}
}

// TestEncodeWithCredentialFails checks that EncodeWithCredential returns no
// message if the credential can't be created.
func TestEncodeWithCredentialFails(t *testing.T) {
	down := errors.New("down")
	b, err := EncodeWithCredential(codec.Newest, 0, RequestPing, func(Type, []byte) (*Credential, error) { return nil, down }, Empty{})
	if !errors.Is(err, down) || b != nil {
		t.Errorf("got %x, %v", b, err)
	}
}
