package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The kinds of findings.
const (
	phrase = iota
	definition
	retiredName
	retiredWord
)

var kinds = [...]string{"forbidden phrases", "function comments that define", "retired names", "retired words"}

// A place holds the findings that are counted together: those in all Go files
// of a top-level folder, or those in one other file.
type place struct {
	findings [len(kinds)][]finding
}

type finding struct {
	path              string
	line              int
	text, replacement string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: %s", f.path, f.line, f.text, f.replacement)
}

// inPaths reports whether the finding's path begins with one of prefixes. It
// returns true if there are no prefixes.
func (f finding) inPaths(prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.path, p) })
}

// A report collects findings. It also counts words and functions, so that the
// findings can be reported in proportion to them.
type report struct {
	places           map[string]*place
	words, functions int
}

func (r *report) add(kind int, path string, line int, text, replacement string) {
	name := path
	if filepath.Ext(path) == ".go" {
		name, _, _ = strings.Cut(filepath.Dir(path), "/")
	}
	if r.places[name] == nil {
		r.places[name] = &place{}
	}
	p := r.places[name]
	p.findings[kind] = append(p.findings[kind], finding{path, line, strings.TrimSpace(text), replacement})
}

// file checks the texts in the file at path. It ignores files of unknown kinds.
func (r *report) file(path string) error {
	extract := map[string]func(string) string{
		".md": fromMarkdown, ".1": fromMdoc, ".5": fromMdoc, ".8": fromMdoc,
		".mk": fromHashComments, ".in": fromHashComments, ".conf": fromHashComments, ".env": fromHashComments, "": fromHashComments,
	}[filepath.Ext(path)]
	name := filepath.Base(path)
	switch {
	case filepath.Ext(path) == ".go":
		return r.goFile(path)
	case extract == nil || name == "LICENSE" || strings.HasPrefix(name, "."):
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r.text(path, 1, extract(string(raw)))
	return nil
}

// goFile checks a Go file: its comments, the names that it declares, and its
// strings of three words or more. Such strings are usually errors, hints, log
// messages or descriptions.
func (r *report) goFile(path string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	line := func(p token.Pos) int { return files.Position(p).Line }
	for _, group := range file.Comments {
		r.text(path, line(group.Pos()), group.Text())
	}
	r.name(path, 1, strings.TrimSuffix(filepath.Base(path), ".go"))
	r.name(path, line(file.Name.Pos()), file.Name.Name)
	names := func(idents ...*ast.Ident) {
		for _, i := range idents {
			if i != nil {
				r.name(path, line(i.Pos()), i.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && strings.Count(text, " ") > 1 {
				r.text(path, line(n.Pos()), text)
			}
		case *ast.FuncDecl:
			names(n.Name)
			r.functionComment(path, line(n.Pos()), n)
		case *ast.TypeSpec:
			names(n.Name)
		case *ast.ValueSpec:
			names(n.Names...)
		case *ast.Field:
			names(n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if i, ok := left.(*ast.Ident); ok {
						names(i)
					}
				}
			}
		}
		return true
	})
	return nil
}

var defines = regexp.MustCompile(`^\w+,? (is|are|was|has|can|tells?|says|what|whether|how|where|who|whom|the|an?)\b`)

var isTest = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)

// functionComment checks that the comment on a function begins with a verb.
func (r *report) functionComment(path string, line int, f *ast.FuncDecl) {
	text := f.Doc.Text()
	if text == "" || isTest.MatchString(f.Name.Name) {
		return
	}
	r.functions++
	if found := defines.FindString(text); found != "" && strings.HasPrefix(text, f.Name.Name) {
		r.add(definition, path, line, found, "begin with a verb: returns, reports whether, sends")
	}
}

var (
	wordPattern = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	wordPart    = regexp.MustCompile(`[A-Z]?[a-z]+`)
)

// name checks the words of the declared name.
func (r *report) name(path string, line int, name string) {
	for _, part := range wordPart.FindAllString(name, -1) {
		if replacement := replacementFor(retiredInNames, strings.ToLower(part)); replacement != "" {
			r.add(retiredName, path, line, name, replacement)
		}
	}
}

// text checks a text that begins at the given line of the file at path. It
// skips everything in backquotes, such as names and quotations.
func (r *report) text(path string, line int, text string) {
	text = inlineCode.ReplaceAllString(text, "CODE")
	for _, loc := range wordPattern.FindAllStringIndex(text, -1) {
		w := text[loc[0]:loc[1]]
		r.words++
		if replacement := replacementFor(retired, strings.ToLower(w)); replacement != "" {
			r.add(retiredWord, path, line+strings.Count(text[:loc[0]], "\n"), w, replacement)
		}
	}
	joined := strings.ReplaceAll(text, "\n", " ") // a phrase may continue on the next line
	for _, p := range phrases {
		for _, loc := range p.pattern.FindAllStringIndex(joined, -1) {
			r.add(phrase, path, line+strings.Count(text[:loc[0]], "\n"), joined[loc[0]:loc[1]], p.replacement)
		}
	}
}

var inlineCode = regexp.MustCompile("`[^`\n]*`")

// fromMarkdown returns a page with empty lines instead of its code blocks, so
// that line numbers do not change.
func fromMarkdown(page string) string {
	code := false
	return lines(page, func(line string) string {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			return ""
		}
		if code || strings.HasPrefix(line, "    ") {
			return ""
		}
		return line
	})
}

var mdocMacro = regexp.MustCompile(`\b[A-Z][a-z]\b`)

// fromMdoc returns the text of a manual page without its macros and displays.
func fromMdoc(page string) string {
	display := false
	return lines(page, func(line string) string {
		switch {
		case strings.HasPrefix(line, ".Bd"):
			display = true
		case strings.HasPrefix(line, ".Ed"):
			display = false
		case !display && strings.HasPrefix(line, "."):
			return mdocMacro.ReplaceAllString(line[1:], "")
		case !display:
			return line
		}
		return ""
	})
}

// fromHashComments returns the comments of a Makefile, a systemd unit or a
// script.
func fromHashComments(page string) string {
	return lines(page, func(line string) string {
		_, comment, _ := strings.Cut(" "+line, " #")
		return strings.TrimLeft(comment, "#!")
	})
}

func lines(page string, each func(string) string) string {
	list := strings.Split(page, "\n")
	for i := range list {
		list[i] = each(list[i])
	}
	return strings.Join(list, "\n")
}
