package auth

import (
	"math"
	"sync/atomic"
	"time"
)

// Token is a verified token. It is immutable but for its attachment, and may be used by any number of goroutines.
type Token struct {
	// Claims is what the token says: a value of kind Map.
	Claims Value

	text       string
	hash       uint64
	from       int64    // valid at and after, in Unix nanoseconds
	until      int64    // valid before
	id         string   // jti
	key        *key     // that signed it
	denied     *Refusal // genuine, but a rule is not fulfilled
	by         *JWT     // that verified it
	identity   Identity
	attachment atomic.Pointer[any]
}

// Expires is the moment from which the token is refused, leeway included; ok is false when it has none within the next two
// centuries.
func (t *Token) Expires() (at time.Time, ok bool) {
	if t.until == math.MaxInt64 {
		return time.Time{}, false
	}
	return time.Unix(0, t.until), true
}

// Attachment is what Attach has put beside the token, nil before. It lives as long as the token does in the verifier's cache.
func (t *Token) Attachment() any {
	if p := t.attachment.Load(); p != nil {
		return *p
	}
	return nil
}

// Attach keeps beside the token what was made of it, for all later requests with the same token. The first one wins: what is
// returned is what is kept.
func (t *Token) Attach(made any) any {
	if t.attachment.CompareAndSwap(nil, &made) {
		return made
	}
	return *t.attachment.Load()
}

// check says whether the token is valid at that moment. On or after its end it is expired (RFC 7519, section 4.1.4).
func (t *Token) check(now int64) error {
	switch {
	case now >= t.until:
		return errExpired
	case now < t.from:
		return errEarly
	default:
		return nil
	}
}

var (
	errExpired = &Refusal{kind: ErrExpired, reason: "exp has passed"}
	errEarly   = &Refusal{kind: ErrInvalid, reason: "nbf or iat lies in the future"}
)
