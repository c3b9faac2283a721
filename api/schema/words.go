package schema

import "strings"

// Word is a name for some bits of an integer. An integer has the word if its
// bits under Mask equal Value.
type Word[T Integer] struct {
	Name     string
	Mask     T
	Value    T
	versions span
	alone    bool
}

// Bit returns a Word for one or more bits. An integer has the word if all of
// these bits are set.
func Bit[T Integer](name string, bits T, opts ...Option) Word[T] {
	return Part(name, bits, bits, opts...)
}

// Part returns a Word that an integer has if its bits under mask equal value.
// Of the options, only Since, Until and Alone have an effect.
func Part[T Integer](name string, mask, value T, opts ...Option) Word[T] {
	var t traits
	for _, o := range opts {
		t = o(t)
	}
	return Word[T]{Name: name, Mask: mask, Value: value, versions: t.versions, alone: t.alone}
}

// WordSet is the Type of an integer that is shown as an array of words. The
// array has the order in which the words were declared.
type WordSet[T Integer] struct {
	name  string // name of its schema; "" for none
	words []Word[T]
}

// Words declares a set of words. The set's schema is called name.
func Words[T Integer](name string, words ...Word[T]) *WordSet[T] { return &WordSet[T]{name, words} }

// Type returns s as the type of a field.
func (s *WordSet[T]) Type() Type[T] { return s }

func (s *WordSet[T]) wordsOf(v Version) []Word[T] {
	var list []Word[T]
	for _, w := range s.words {
		if w.versions.has(v) {
			list = append(list, w)
		}
	}
	return list
}

// Names returns the words that n has, in any version.
func (s *WordSet[T]) Names(n T) (names []string) {
	for _, w := range s.words {
		if n&w.Mask == w.Value {
			names = append(names, w.Name)
		}
	}
	return names
}

// Find returns the word with this name, in any version. Case does not matter.
func (s *WordSet[T]) Find(name string) (w Word[T], found bool) {
	for _, w := range s.words {
		if strings.EqualFold(w.Name, name) {
			return w, true
		}
	}
	return w, false
}

// AllNames returns the names of all words, in any version.
func (s *WordSet[T]) AllNames() (names []string) {
	for _, w := range s.words {
		names = append(names, w.Name)
	}
	return names
}

func (s *WordSet[T]) Shape(v View) *Shape {
	word := &Shape{Kind: "string"}
	for _, w := range s.wordsOf(v.Version) {
		word.Enum = append(word.Enum, w.Name)
	}
	return &Shape{Name: s.name, Kind: "array", Items: word}
}

// Renderer returns a function that writes the words of an integer.
func (s *WordSet[T]) Renderer(v View) func(Encoder, *T) {
	words := s.wordsOf(v.Version)
	return func(e Encoder, n *T) {
		e.BeginArray()
		for i := range words {
			if *n&words[i].Mask == words[i].Value {
				e.String(words[i].Name)
				if words[i].alone {
					break
				}
			}
		}
		e.EndArray()
	}
}

// Parser returns a function that parses an array of words or a string of
// comma-separated words. Case does not matter.
func (s *WordSet[T]) Parser(v View) func(*Report, *Value, *T) bool {
	known := oneOf(s.Shape(v).Items.Enum)
	byName := make(map[string]Word[T])
	for _, w := range s.wordsOf(v.Version) {
		if _, duplicate := byName[strings.ToLower(w.Name)]; !duplicate {
			byName[strings.ToLower(w.Name)] = w
		}
	}
	return func(r *Report, doc *Value, into *T) bool {
		names, ok := wordList(r, doc)
		if !ok {
			return false
		}
		var n T
		for _, name := range names {
			w, found := byName[strings.ToLower(name)]
			if !found {
				return r.Error(doc, "unknown word %q; %s", Shorten(name), known)
			}
			n = n&^w.Mask | w.Value
		}
		*into = n
		return true
	}
}

// oneOf returns the part of an error message that lists the accepted names.
func oneOf(names []string) string {
	const maxLen = 1000
	list := "expected one of " + strings.Join(names, ", ")
	if len(list) <= maxLen {
		return list
	}
	return list[:strings.LastIndexByte(list[:maxLen], ',')] + ", …"
}

// wordList returns the words in doc, which may be an array or a string of
// comma-separated words.
func wordList(r *Report, doc *Value) ([]string, bool) {
	switch doc.Kind {
	case Text:
		r.WarnKind(doc, Array)
		var names []string
		for name := range strings.SplitSeq(doc.Text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
		return names, true
	case Array:
		names := make([]string, len(doc.Items))
		for i := range doc.Items {
			if doc.Items[i].Kind != Text {
				r.InElement(i, func() { r.Error(&doc.Items[i], "expected string, got %s", doc.Items[i].Kind) })
				return nil, false
			}
			names[i] = doc.Items[i].Text
		}
		return names, true
	}
	return nil, r.Error(doc, "expected array, got %s", doc.Kind)
}
