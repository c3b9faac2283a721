package schema

import (
	"fmt"
	"strings"
	"testing"
)

// TestLongWordList checks that a message does not list too many words.
func TestLongWordList(t *testing.T) {
	var words []Word[uint64]
	for i := range 64 {
		words = append(words, Bit(fmt.Sprintf("WORD_OF_SOME_LENGTH_%d", i), uint64(1)<<i))
	}
	var r Report
	var n uint64
	if Words("", words...).Parser(View{})(&r, &Value{Kind: Text, Text: "x"}, &n) || len(r.Errors) != 1 {
		t.Fatalf("errors %+v", r.Errors)
	}
	got := r.Errors[0].Text
	if !strings.HasPrefix(got, `unknown word "x"; expected one of WORD_OF_SOME_LENGTH_0, `) || !strings.HasSuffix(got, ", …") || len(got) > 1100 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
