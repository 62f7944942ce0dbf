package auth_test

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
)

func TestTimes(t *testing.T) {
	seconds := func(d float64) string { return fmt.Sprintf("%.3f", 1_700_000_000+d) }
	tests := []struct {
		name   string
		claims string
		leeway time.Duration
		want   error
	}{
		{"exp with a fraction", `{"exp":` + seconds(600.811) + `}`, 0, nil},
		{"exp a millisecond ahead", `{"exp":` + seconds(0.001) + `}`, 0, nil},
		{"exp a thousandth of a nanosecond ahead", `{"exp":1700000000.000000000001}`, 0, nil},
		{"exp now", `{"exp":1700000000}`, 0, auth.ErrExpired},
		{"exp now, other spelling", `{"exp":17.0e8}`, 0, auth.ErrExpired},
		{"exp a millisecond ago", `{"exp":` + seconds(-0.001) + `}`, 0, auth.ErrExpired},
		{"exp zero", `{"exp":0}`, 0, auth.ErrExpired},
		{"exp below zero", `{"exp":-1}`, 0, auth.ErrExpired},
		{"exp a string", `{"exp":"1900000000"}`, 0, auth.ErrInvalid},
		{"exp null", `{"exp":null}`, 0, auth.ErrInvalid},
		{"exp true", `{"exp":true}`, 0, auth.ErrInvalid},
		{"exp far ahead", `{"exp":1e19}`, 0, nil},
		{"exp far behind", `{"exp":-1e19}`, 0, auth.ErrExpired},
		{"exp absent", `{}`, 0, nil},
		{"exp 4.9 s ago, leeway 5 s", `{"exp":` + seconds(-4.9) + `}`, 5 * time.Second, nil},
		{"exp 5 s ago, leeway 5 s", `{"exp":` + seconds(-5) + `}`, 5 * time.Second, auth.ErrExpired},
		{"exp far ahead, leeway 5 s", `{"exp":9223372036.854775807}`, 5 * time.Second, nil},
		{"nbf now", `{"nbf":1700000000}`, 0, nil},
		{"nbf 0.4 s ahead", `{"nbf":` + seconds(0.4) + `}`, 0, auth.ErrInvalid},
		{"nbf far ahead", `{"nbf":1e19}`, 0, auth.ErrInvalid},
		{"nbf beyond all floats", `{"nbf":1e999}`, 5 * time.Second, auth.ErrInvalid},
		{"nbf with an exponent beyond all numbers", `{"nbf":1e99999999999999999999}`, 0, auth.ErrInvalid},
		{"nbf with a tiny exponent", `{"nbf":1e-99999999999999999999}`, 0, nil},
		{"nbf far behind", `{"nbf":-1e19}`, 5 * time.Second, nil},
		{"nbf null", `{"nbf":null}`, 0, auth.ErrInvalid},
		{"nbf 5 s ahead, leeway 5 s", `{"nbf":` + seconds(5) + `}`, 5 * time.Second, nil},
		{"nbf 5.001 s ahead, leeway 5 s", `{"nbf":` + seconds(5.001) + `}`, 5 * time.Second, auth.ErrInvalid},
		{"iat now", `{"iat":1700000000}`, 0, nil},
		{"iat 0.4 s ahead", `{"iat":` + seconds(0.4) + `}`, 0, auth.ErrInvalid},
		{"iat 0.4 s ahead, leeway 5 s", `{"iat":` + seconds(0.4) + `}`, 5 * time.Second, nil},
		{"iat an hour ahead", `{"iat":` + seconds(3600) + `}`, 5 * time.Second, auth.ErrInvalid},
		{"iat a string", `{"iat":"1700000000"}`, 0, auth.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := verifier(t, auth.JWTOptions{Leeway: test.leeway})
			if _, err := v.Verify(token(test.claims)); !errors.Is(err, test.want) {
				t.Errorf("got %v (%s), want %v", err, auth.Reason(err), test.want)
			}
		})
	}
}

func TestIssuerAudienceAndRequiredClaims(t *testing.T) {
	o := auth.JWTOptions{Issuer: []string{"a", "b"}, Audience: []string{"x", "y"}, Required: []string{"sub", "exp"}}
	v := verifier(t, o)
	tests := map[string]bool{
		`{"iss":"a","aud":"x","sub":"t","exp":1e10}`:           true,
		`{"iss":"a","aud":"x","sub":"","exp":1e10}`:            false,
		`{"iss":"a","aud":"x","sub":"t\r\nX: y","exp":1e10}`:   false,
		`{"iss":"a","aud":"x","sub":"t\u0000","exp":1e10}`:     false,
		`{"iss":"b","aud":["z","y"],"sub":"tom","exp":1e10}`:   true,
		`{"iss":"c","aud":"x","sub":"tom","exp":1e10}`:         false,
		`{"iss":"A","aud":"x","sub":"tom","exp":1e10}`:         false,
		`{"aud":"x","sub":"tom","exp":1e10}`:                   false,
		`{"iss":"","aud":"x","sub":"tom","exp":1e10}`:          false,
		`{"iss":"a","aud":"z","sub":"tom","exp":1e10}`:         false,
		`{"iss":"a","aud":[],"sub":"tom","exp":1e10}`:          false,
		`{"iss":"a","sub":"tom","exp":1e10}`:                   false,
		`{"iss":"a","aud":"x","exp":1e10}`:                     false,
		`{"iss":"a","aud":"x","sub":"tom"}`:                    false,
		`{"iss":"a","aud":["x",null],"sub":"tom","exp":1e10}`:  false,
		`{"iss":"a","aud":{"x":"x"},"sub":"tom","exp":1e10}`:   false,
		`{"iss":["a"],"aud":["x"],"sub":"tom","exp":1e10}`:     false,
		`{"iss":"a","aud":"x","sub":"tom","exp":1e10,"ISS":1}`: true,
	}
	for claims, good := range tests {
		if _, err := v.Verify(token(claims)); (err == nil) != good {
			t.Errorf("%s: %v (%s)", claims, err, auth.Reason(err))
		}
	}
}

func TestClaimsKeepWhatWasWritten(t *testing.T) {
	verified, err := verifier(t, auth.JWTOptions{}).Verify(token(`{"sub":"t\u00f6m \ud83d\ude00","name":"a\n","id":12345678901234567890,"f":1.10,
		"e":1E400,"admin":true,"not":false,"none":null,"roles":["a",{"b":[]}],"empty":{},"":"x"}`))
	if err != nil {
		t.Fatal(err, auth.Reason(err))
	}
	claims := verified.Claims
	for name, want := range map[string]string{"sub": "töm 😀", "name": "a\n", "id": "12345678901234567890", "f": "1.10", "e": "1E400", "": "x", "admin": ""} {
		if v, ok := claims.Get(name); !ok || v.Text() != want {
			t.Errorf("%s is %q, want %q", name, v.Text(), want)
		}
	}
	for name, want := range map[string]auth.Kind{"sub": auth.String, "id": auth.Number, "admin": auth.Bool, "none": auth.Null, "roles": auth.List, "empty": auth.Map, "absent": auth.Null} {
		if v, ok := claims.Get(name); v.Kind() != want || ok != (name != "absent") {
			t.Errorf("%s has kind %v, want %v", name, v.Kind(), want)
		}
	}
	admin, _ := claims.Get("admin")
	not, _ := claims.Get("not")
	if !admin.Bool() || not.Bool() {
		t.Error("true and false are not told apart")
	}
	if first, _ := claims.At(0); claims.Len() != 11 || first != "sub" {
		t.Errorf("%d claims, the first %q", claims.Len(), first)
	}
	roles, _ := claims.Get("roles")
	_, role := roles.At(0)
	_, other := roles.At(1)
	if list, _ := other.Get("b"); roles.Len() != 2 || role.Text() != "a" || list.Kind() != auth.List || list.Len() != 0 {
		t.Errorf("roles are %+v", roles)
	}
	if _, ok := roles.Get(""); ok {
		t.Error("a list has members")
	}
}

// FuzzExpiry compares with arithmetic that knows no rounding.
func FuzzExpiry(f *testing.F) {
	for _, number := range []string{"1700000000", "1700000000.000000001", "17e8", "1.7e9", "-1e19", "0.00000017e16", "1699999999.9999999999", "9999999999"} {
		f.Add(number)
	}
	number := regexp.MustCompile(`^-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$`)
	v, err := auth.NewJWT(auth.JWTOptions{Secret: secret, Clock: at(now), Cache: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !number.MatchString(text) {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip()
		}
		ahead := exact.Cmp(big.NewRat(now.Unix(), 1)) > 0
		if _, err := v.Verify(token(`{"exp":` + text + `}`)); (err == nil) != ahead || err != nil && !errors.Is(err, auth.ErrExpired) {
			t.Fatalf("exp %s: got %v (%s)", text, err, auth.Reason(err))
		}
		if _, err := v.Verify(token(`{"nbf":` + text + `}`)); (err != nil) != ahead {
			t.Fatalf("nbf %s: got %v", text, err)
		}
	})
}
