package conf

import (
	"fmt"
	"strconv"
	"strings"
)

// Environment looks a variable up; ok is false when it is not set. os.LookupEnv is one.
type Environment func(name string) (value string, ok bool)

// references are what strings of the configuration may refer to.
type references struct {
	env  Environment
	file func(path string) (text string, err error) // reads a file; the path is relative to the configuration
}

// expand resolves the references in a string of the configuration; found tells that there was one.
//
//	${NAME}            the variable; unset is an error, empty counts as set
//	${NAME:-default}   the variable, or the text up to the matching brace as it stands when it is not set
//	${NAME+21}         the variable, which is a whole number, plus 21
//	${NAME:-9000+21}   the variable or 9000, plus 21: for ports that lie in one row
//	${file:PATH}       what the file holds, without the line end at its end; the path is relative to the configuration
//	$${                the two signs ${ as text
//
// A bare $ is text, and so is ${1}, a group of a rewrite, because no variable's name begins with a digit. What a
// variable or a file holds is never read as a reference or as TOML.
func (r references) expand(text string) (expanded string, found bool, err error) {
	if !strings.Contains(text, "${") {
		return text, false, nil
	}
	var out strings.Builder
	for text != "" {
		before, rest, ok := strings.Cut(text, "${")
		out.WriteString(before)
		if !ok {
			break
		}
		if strings.HasSuffix(before, "$") {
			out.WriteString("{")
			text = rest
			continue
		}
		body, after, ok := cutBrace(rest)
		if !ok {
			return "", found, fmt.Errorf("${%s has no closing brace: write ${NAME} or ${NAME:-default}; the signs ${ as text are $${", shorten(rest))
		}
		text = after
		if isDigits(body) {
			out.WriteString("${" + body + "}")
			continue
		}
		value, err := r.resolve(body)
		if err != nil {
			return "", true, err
		}
		found = true
		out.WriteString(value)
	}
	return out.String(), found, nil
}

// cutBrace cuts text at the brace that closes a reference; braces inside of it come in pairs.
func cutBrace(text string) (body, after string, ok bool) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return text[:i], text[i+1:], true
			}
			depth--
		}
	}
	return "", "", false
}

// resolve gives the text for what stands between the braces of a reference.
func (r references) resolve(body string) (string, error) {
	if path, ok := strings.CutPrefix(body, "file:"); ok && !strings.HasPrefix(path, "-") {
		return r.readFile(path)
	}
	end := 0
	for end < len(body) && isNameByte(body[end], end) {
		end++
	}
	name, rest := body[:end], body[end:]
	fallback, hasFallback := strings.CutPrefix(rest, ":-")
	offset, hasOffset := "", false
	switch {
	case hasFallback:
		if number, plus, ok := strings.Cut(fallback, "+"); ok && isDigits(number) && isDigits(plus) {
			fallback, offset, hasOffset = number, plus, true
		}
	case strings.HasPrefix(rest, "+") && isDigits(rest[1:]):
		offset, hasOffset = rest[1:], true
	case name == "" || rest != "":
		return "", fmt.Errorf("${%s} is no reference: write ${NAME}, ${NAME:-default} or ${NAME:-9000+1}; the signs ${ as text are $${", shorten(body))
	}
	if name == "" {
		return "", fmt.Errorf("${%s} names no variable: a name is letters, digits and _, and begins with no digit", shorten(body))
	}
	value, set := r.env(name)
	if !set {
		if !hasFallback {
			return "", fmt.Errorf("the environment variable %s is not set: set it or write ${%s:-default}", name, name)
		}
		value = fallback
	}
	if !hasOffset {
		return value, nil
	}
	base, err := strconv.ParseInt(value, 10, 64)
	plus, err2 := strconv.ParseInt(offset, 10, 64)
	if err != nil || err2 != nil || base < 0 || base+plus < base {
		return "", fmt.Errorf("the environment variable %s is no whole number, so %s cannot be added to it", name, offset)
	}
	return strconv.FormatInt(base+plus, 10), nil
}

// readFile gives a file's text without one line end at its end: editors and most tools write one behind a secret.
func (r references) readFile(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("${file:} names no file: write ${file:secrets/jwt}")
	}
	text, err := r.file(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), nil
}

func isNameByte(c byte, at int) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || at > 0 && c >= '0' && c <= '9'
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// shorten keeps an error to one short line, whatever was written.
func shorten(text string) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i]
	}
	if len(text) > 40 {
		text = strings.ToValidUTF8(text[:40], "") + "..."
	}
	return text
}
