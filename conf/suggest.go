package conf

import (
	"fmt"
	"slices"
	"strings"
)

// hint says what an unknown key may have meant: a near key of the same table, one that has it as a word, or the table that the key belongs to.
func (s section[T]) hint(path, key string, everywhere []string) string {
	if near := Nearest(key, s.names()); near != "" {
		return fmt.Sprintf(": did you mean %s?", near)
	}
	if longer := withWord(key, s.names()); len(longer) > 0 {
		return fmt.Sprintf(": did you mean %s?", orList(longer))
	}
	var homes []string
	for _, known := range everywhere {
		if table, last, ok := cutLast(known); ok && last == key {
			homes = append(homes, "["+table+"]")
		}
	}
	if len(homes) > 0 {
		return ": it belongs to " + orList(homes)
	}
	if path == "" {
		return ": the tables are " + strings.Join(s.names(), ", ")
	}
	return ": the keys here are " + strings.Join(s.names(), ", ")
}

// withWord returns the names that have word among their own: path_prefix and strip_prefix for prefix.
func withWord(word string, names []string) []string {
	var longer []string
	for _, name := range names {
		if slices.Contains(strings.Split(name, "_"), word) {
			longer = append(longer, name)
		}
	}
	return longer
}

func cutLast(key string) (table, last string, ok bool) {
	i := strings.LastIndexByte(key, '.')
	if i < 0 {
		return "", key, false
	}
	return key[:i], key[i+1:], true
}

// orList joins names with commas and an "or".
func orList(names []string) string {
	names = slices.Compact(names)
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// quotedList joins words in quotes.
func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = fmt.Sprintf("%q", word)
	}
	return strings.Join(quoted, ", ")
}

// nearHint gives " (did you mean ...?)" when a known word is near.
func nearHint(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// Nearest returns the known word that differs least from word: by case, by a plural, or by few letters; "" when none is near.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	if len(word) > 64 {
		return ""
	}
	for _, candidate := range known {
		if strings.EqualFold(candidate, word) {
			return candidate
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(candidate)); d <= least && d < len(candidate) {
			if d < least || best == "" {
				best, least = candidate, d
			}
		}
	}
	return best
}

// editDistance counts the letters to insert, drop, replace or swap (Damerau 1964, adjacent swaps).
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
