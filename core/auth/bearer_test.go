package auth_test

import (
	"errors"
	"testing"

	"github.com/moongate/moongate/core"
	"github.com/moongate/moongate/core/auth"
)

func TestBearer(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		token string
		err   error
	}{
		{"usual", []string{"Bearer a.b.c"}, "a.b.c", nil},
		{"lower case", []string{"bearer a.b.c"}, "a.b.c", nil},
		{"upper case and several spaces", []string{"BEARER   a.b.c"}, "a.b.c", nil},
		{"padding", []string{"Bearer abc=="}, "abc==", nil},
		{"none", nil, "", auth.ErrMissing},
		{"empty", []string{""}, "", auth.ErrMissing},
		{"another scheme", []string{"Basic dG9tOnRvbQ=="}, "", auth.ErrMissing},
		{"scheme alone", []string{"Bearer"}, "", auth.ErrMissing},
		{"scheme and a space", []string{"Bearer "}, "", auth.ErrMissing},
		{"no space", []string{"BearerT"}, "", auth.ErrMissing},
		{"something behind", []string{"Bearer T x"}, "", auth.ErrInvalid},
		{"two in one line", []string{"Bearer A, Bearer B"}, "", auth.ErrInvalid},
		{"comma behind", []string{"Bearer A,"}, "", auth.ErrInvalid},
		{"tab for the space", []string{"Bearer\tT"}, "", auth.ErrInvalid},
		{"colon", []string{"Bearer: T"}, "", auth.ErrInvalid},
		{"only padding", []string{"Bearer =="}, "", auth.ErrInvalid},
		{"padding inside", []string{"Bearer a=b"}, "", auth.ErrInvalid},
		{"quotes", []string{`Bearer "T"`}, "", auth.ErrInvalid},
		{"two lines, good first", []string{"Bearer a.b.c", "Basic x"}, "", auth.ErrInvalid},
		{"two lines, good last", []string{"Basic x", "Bearer a.b.c"}, "", auth.ErrInvalid},
		{"two equal lines", []string{"Bearer a", "Bearer a"}, "", auth.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h core.Header
			h.Add("Accept", "*/*")
			for _, line := range test.lines {
				h.Add("authorization", line)
			}
			token, err := auth.Bearer(&h)
			if string(token) != test.token || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, want %q, %v", token, err, test.token, test.err)
			}
		})
	}
}
