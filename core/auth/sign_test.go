package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/moongate/moongate/core/auth"
)

func TestSignedTokensVerify(t *testing.T) {
	claims := map[string]any{"sub": "tom", "iat": now.Unix()}
	text, err := auth.Sign(secret, claims, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(claims) != 2 {
		t.Error("the caller's map was changed")
	}
	v := verifier(t, auth.JWTOptions{Required: []string{"sub", "exp", "iat"}})
	if _, err := v.Verify(text); err != nil {
		t.Error(err, auth.Reason(err))
	}
	text, err = auth.Sign(secret, claims, now.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(text); !errors.Is(err, auth.ErrExpired) || err.Error() != "token expired" {
		t.Errorf("got %v, want token expired", err)
	}
	if text, err = auth.Sign(secret, nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := verifier(t, auth.JWTOptions{}).Verify(text); err != nil {
		t.Error(err)
	}
	if _, err := auth.Sign(secret[:31], claims, now); err == nil {
		t.Error("a short secret was accepted")
	}
	if _, err := auth.Sign(secret, map[string]any{"f": func() {}}, now); err == nil {
		t.Error("a claim that is no JSON was accepted")
	}
}
