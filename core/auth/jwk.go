package auth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

// maxKeys is how many keys a set may have.
const maxKeys = 256

// keySet is a JSON Web Key Set (RFC 7517, section 5). It is immutable, but for the mark of keys that a later set has no longer.
type keySet struct {
	keys  []*key
	byKid map[string][]*key // keys without one under ""
}

// keyFault is what is wrong with a key of a set, which could not be used.
type keyFault struct {
	index int
	why   string
}

func (f keyFault) String() string { return fmt.Sprintf("key %d: %s", f.index+1, f.why) }

// parseKeySet reads a set. Keys that are for something else, or of a kind that verifies nothing here, are left out (section 5); faults
// tell which were broken. algorithm, when it is not "", is the only one that is used. Shared secrets are taken with secrets alone: who
// publishes one has no secret. A set without a usable key is an error.
func parseKeySet(text []byte, algorithm string, secrets bool) (*keySet, []keyFault, error) {
	set, err := parseMap(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("no key set: %w", err)
	}
	list, _ := set.Get("keys")
	if list.Kind() != List {
		return nil, nil, errors.New("no key set: it has no list of keys")
	}
	if list.Len() > maxKeys {
		return nil, nil, fmt.Errorf("a set of %d keys: at most %d", list.Len(), maxKeys)
	}
	s := &keySet{byKid: map[string][]*key{}}
	var faults []keyFault
	for i := range list.Len() {
		_, item := list.At(i)
		k, err := parseKey(item, algorithm, secrets)
		switch {
		case err != nil:
			faults = append(faults, keyFault{i, err.Error()})
		case k != nil:
			s.add(k)
		}
	}
	if len(s.keys) == 0 {
		if len(faults) > 0 {
			return nil, faults, fmt.Errorf("no usable key in the set: %s", faults[0])
		}
		return nil, nil, errors.New("no usable key in the set")
	}
	return s, faults, nil
}

// add puts a key into the set, once.
func (s *keySet) add(k *key) {
	for _, known := range s.keys {
		if known.id == k.id {
			return
		}
	}
	s.keys = append(s.keys, k)
	s.byKid[k.kid] = append(s.byKid[k.kid], k)
}

// adopt takes over the keys of an older set that this one has too, with all that was verified by them, and marks the others as gone.
func (s *keySet) adopt(old *keySet) {
	if old == nil {
		return
	}
	for _, was := range old.keys {
		kept := false
		for i, k := range s.keys {
			if k.id == was.id {
				kept, s.keys[i] = true, was
			}
		}
		if !kept {
			was.gone.Store(true)
		}
	}
	clear(s.byKid)
	for _, k := range s.keys {
		s.byKid[k.kid] = append(s.byKid[k.kid], k)
	}
}

// parseKey reads one key (RFC 7517, section 4). nil without an error is a key that is not for us.
func parseKey(v Value, algorithm string, secrets bool) (*key, error) {
	if v.Kind() != Map {
		return nil, errors.New("is no map")
	}
	f := jwkFields{v: v}
	kty, kid, alg := f.text("kty"), f.text("kid"), f.text("alg")
	use := f.text("use")
	if f.err != nil {
		return nil, f.err
	}
	if use != "" && use != "sig" || !f.verifies() || algorithm != "" && alg != "" && alg != algorithm {
		return nil, nil
	}
	named := alg != ""
	if !named {
		alg = algorithm
	}
	var k *key
	var err error
	switch kty {
	case "RSA":
		k, err = f.rsa(alg)
	case "EC":
		k, err = f.ec(alg)
	case "OKP":
		k, err = f.okp(alg)
	case "oct":
		if !secrets {
			return nil, nil
		}
		k, err = secretKey(alg, f.bytes("k"))
	default:
		return nil, nil
	}
	switch {
	case f.err != nil:
		return nil, f.err
	case err != nil:
		if _, other := errors.AsType[misfit](err); other && !named {
			return nil, nil // a key of another kind than the one algorithm wants
		}
		return nil, err
	case k == nil:
		return nil, nil
	}
	k.kid = kid
	k.id = sha256.Sum256([]byte(strings.Join([]string{kty, kid, k.method.Alg(), f.material}, "\x00")))
	return k, nil
}

// fitting gives the keys that a token with that head may be verified with, and whether there is one of its kid at all.
func (s *keySet) fitting(h *head, into []*key) (keys []*key, known bool) {
	from := s.keys
	if h.hasKid {
		from = s.byKid[h.kid]
		known = len(from) > 0
		if !known {
			from = s.byKid[""] // keys without a name may be anybody's
		}
	} else {
		known = true
	}
	for _, k := range from {
		if k.method.Alg() == h.alg {
			into = append(into, k)
		}
	}
	return into, known
}

// maxTried is how many keys a token is tried with.
const maxTried = 16

// find gives the one key that made a signature. stale tells that a newer set might have it.
func (s *keySet) find(h *head, text string, signature []byte) (found *key, stale bool, err error) {
	var room [4]*key
	keys, known := s.fitting(h, room[:0])
	if len(keys) > maxTried {
		return nil, false, invalid("more keys fit than are tried: the token names none")
	}
	for _, k := range keys {
		if !k.verify(text, signature) {
			continue
		}
		if found != nil {
			return nil, false, invalid("several keys fit: the token names none")
		}
		found = k
	}
	switch {
	case found != nil:
		return found, false, nil
	case !known:
		return nil, true, invalid("no key has this kid")
	case len(keys) == 0:
		return nil, !h.hasKid, invalid("head: no key is for this alg")
	}
	return nil, !h.hasKid, invalid("signature does not match")
}
