package auth

import (
	"fmt"
	"strings"
	"time"
)

// ParseAPIKeys reads keys as they are kept in a file, a variable or a store: one JSON object a line; empty lines and those that begin
// with # do not count.
//
//	{"hash":"sha256:9f86d0...","user":"acme","tier":"gold","rate":"100/s","routes":["orders"],"expires":"2027-01-01T00:00:00Z"}
//
// user and, but for stores that find keys by it, hash are needed. The error names the line.
func ParseAPIKeys(text string) ([]APIKey, error) {
	var list []APIKey
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		entry, err := parseMap(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		key, err := apiKeyOf(entry)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, key)
	}
	return list, nil
}

func apiKeyOf(entry Value) (key APIKey, err error) {
	for i := range entry.Len() {
		name, value := entry.At(i)
		into := map[string]*string{"hash": &key.Hash, "user": &key.User, "tier": &key.Tier, "rate": &key.Rate}[name]
		switch {
		case into != nil && value.Kind() == String:
			*into = value.Text()
		case name == "routes" && value.Kind() == List:
			for j := range value.Len() {
				_, route := value.At(j)
				if route.Kind() != String {
					return key, fmt.Errorf("routes is not a list of strings")
				}
				key.Routes = append(key.Routes, route.Text())
			}
		case name == "expires" && value.Kind() == String:
			if key.Expires, err = time.Parse(time.RFC3339, value.Text()); err != nil {
				return key, fmt.Errorf(`expires is no time: write "2027-01-01T00:00:00Z"`)
			}
		case into != nil || name == "routes" || name == "expires":
			return key, fmt.Errorf("%s is of another type", name)
		default:
			return key, fmt.Errorf("there is no %q in a key: it has hash, user, tier, rate, routes, expires", shorten(name))
		}
	}
	return key, nil
}
