// Package credential reads the token of a command from the environment or a
// file. It never reads the token from the command line, which every user of the
// machine can read.
package credential

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// NewTokenHint is a hint that says how to get a token for the controller. The
// command in the hint first unsets SCHED_JWT and SLURM_JWT. Otherwise schedctl
// would use an expired token in one of these variables.
const NewTokenHint = "on the controller's machine, run: unset SCHED_JWT SLURM_JWT; export $(schedctl token)"

// restTokenHint is the hint for commands that use the REST API. Their server
// may be slurmrestd.
const restTokenHint = NewTokenHint + ", or with Slurm: export $(scontrol token)"

// maxFile limits the size of a file with a token.
const maxFile = 64 << 10

// Token returns the token in the file at path. If path is empty, Token returns
// the token in the environment, or "" if there is none. It returns an error if
// the token has expired.
func Token(path string) (string, error) {
	token, origin, err := read(path)
	if err != nil || token == "" {
		return "", err
	}
	if err := CheckWord(token, origin); err != nil {
		return "", err
	}
	if stray := StrayCharacters(token); stray != "" {
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: it has %s", origin, stray).
			WithHint("a token has only letters, digits, - and _, and two dots")
	}
	claims, err := parse(token)
	if err != nil {
		return "", errs.New(errs.Unauthenticated, "the token in %s is invalid: not a JSON Web Token", origin).
			WithHint(restTokenHint)
	}
	if expires, err := claims.GetExpirationTime(); err == nil && expires != nil && !expires.After(time.Now()) {
		return "", errs.New(errs.Unauthenticated, "the token in %s expired %s ago, at %s", origin,
			time.Since(expires.Time).Round(time.Second), expires.Local().Format(time.RFC3339)).WithHint(restTokenHint)
	}
	return token, nil
}

// CheckWord returns an error if the token is the word "daemon". The gateway's
// own environment has this word instead of a token. The origin argument is the
// name of the variable or file.
func CheckWord(token, origin string) error {
	if token != "daemon" {
		return nil
	}
	return errs.New(errs.Unauthenticated, "%s is \"daemon\", which only schedrestd supports", origin).WithHint("unset %s", origin)
}

// User returns the user that the token names. The field argument is the name of
// a third claim, after sun and username, that may contain the user's name; it
// may be empty. If token is empty, User returns the user of this process. It
// returns "" if the name is unknown.
func User(token, field string) string {
	if token == "" {
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return ""
	}
	claims, err := parse(token)
	if err != nil {
		return ""
	}
	for _, name := range []string{"sun", "username", field} {
		if value, ok := claims[name].(string); ok && name != "" {
			return value
		}
	}
	if id, ok := claims["id"].(map[string]any); ok { // the user's identity (use_jwt_client_ids)
		name, _ := id["name"].(string)
		return name
	}
	return ""
}

// parse returns the claims of a token. It does not verify the signature,
// because only the server can do so.
func parse(token string) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(token, claims)
	return claims, err
}

// read returns the token in the file at path. If path is empty, read returns
// the token in the environment. The origin result is the name of the file or
// variable, for error messages.
func read(path string) (token, origin string, err error) {
	if path == "" {
		return FromEnv()
	}
	token, err = ReadFile(path)
	return token, printable.Text(path), err
}

// FromEnv returns the token in SCHED_JWT or SLURM_JWT, and the name of the
// variable. It does not check the token. If neither variable is set, the token
// is "". The variable may contain the whole output of "schedctl token" or
// "scontrol token", which begins with SCHED_JWT= or SLURM_JWT=.
func FromEnv() (token, name string, err error) {
	token, err = conf.Env("SCHED_JWT")
	name = "SCHED_JWT"
	if os.Getenv(name) == "" {
		name = "SLURM_JWT"
	}
	switch {
	case err != nil:
		return "", name, err
	case token == "":
		return "", name, checkEmpty()
	}
	token = strings.TrimPrefix(strings.TrimPrefix(token, "SCHED_JWT="), "SLURM_JWT=")
	if token == "" { // without this error, the command would act as the user of its process
		return "", name, errs.New(errs.Unauthenticated, "%s contains no token", name).WithHint(restTokenHint)
	}
	return token, name, nil
}

// ReadFile reads a token from a file. It returns an error if other users can
// read or change the file. The file may contain the token alone, or the whole
// output of "schedctl token" or "scontrol token". ReadFile does not check the
// token.
func ReadFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", readError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", readError(err)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0:
		return "", errs.New(errs.Unauthenticated, "the token in %s can be read or changed by other users (mode %04o)",
			printable.Text(path), info.Mode().Perm()).
			WithHint("run: chmod 600 %s", printable.Text(path))
	}
	return Read(f, printable.Text(path))
}

// Read does the same as ReadFile for an open file. The argument name is the name
// of the file, for errors.
func Read(f io.Reader, name string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", readError(err)
	}
	token := strings.TrimSpace(string(text))
	for _, prefix := range []string{"export ", "SCHED_JWT=", "SLURM_JWT="} {
		token = strings.TrimPrefix(token, prefix)
	}
	if token == "" {
		return "", errs.New(errs.Unauthenticated, "%s contains no token", name).WithHint(restTokenHint)
	}
	return token, nil
}

// readError returns the error for a file that can't be read. Its hint is not
// that for a token that the server has refused.
func readError(err error) error {
	return &errs.Error{Kind: errs.Unauthenticated, Message: "read the token", Err: err, Hint: "name a file that contains a token and that you can read"}
}

// checkEmpty returns an error if an environment variable for a token is set but
// empty. The command that should have printed the token has probably failed. If
// this program ignored the empty variable, it would act as the user of its
// process, who may be root.
func checkEmpty() error {
	for _, name := range []string{"SCHED_JWT", "SLURM_JWT"} {
		if _, set := os.LookupEnv(name); set {
			return errs.New(errs.Unauthenticated, "%s is set but empty", name).
				WithHint("unset %s to use your own user, or set it to a token", name)
		}
	}
	return nil
}

// StrayCharacters describes characters that do not belong to a token but were
// copied with it. It returns "" if there are none.
func StrayCharacters(token string) string {
	first, n := utf8.DecodeRuneInString(token)
	last, m := utf8.DecodeLastRuneInString(token)
	const quotes = "\"'`“”„‘’«»"
	switch {
	case len(token) >= len("bearer ") && strings.EqualFold(token[:len("bearer ")], "bearer "):
		return `"Bearer" before it`
	case strings.ContainsRune(quotes, first):
		return fmt.Sprintf("a quote (%s) before it", token[:n])
	case strings.ContainsRune("\r\n", first):
		return "a line break before it"
	case strings.ContainsRune("\r\n", last):
		return "a line break after it"
	case strings.ContainsRune(quotes, last):
		return fmt.Sprintf("a quote (%s) after it", token[len(token)-m:])
	case unicode.IsSpace(first):
		return "a space before it"
	case unicode.IsSpace(last):
		return "a space after it"
	case strings.Count(token, ".") != 2: // the text is not a token
		return ""
	case strings.ContainsAny(token, "\r\n"):
		return "a line break in it"
	case strings.ContainsFunc(token, unicode.IsSpace):
		return "a space in it"
	}
	return ""
}
