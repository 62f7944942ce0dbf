package auth

import (
	"context"
	"time"
)

// first gives the keys, and waits for them while the first fetch runs.
func (s *KeySource) first(w Waiter) (*keySet, error) {
	if set := s.set.Load(); set != nil {
		return set, nil
	}
	s.mu.Lock()
	live := s.live
	s.mu.Unlock()
	if live && w != nil {
		if err := s.await(w, s.tried); err != nil {
			return nil, err
		}
	}
	if set := s.set.Load(); set != nil {
		return set, nil
	}
	return nil, unavailable(s.Ready().Error())
}

// newer gives a set that is newer than one in which a key was sought in vain; nil when there is none and none may be fetched now.
func (s *KeySource) newer(w Waiter, had *keySet) (*keySet, error) {
	if set := s.set.Load(); set != had {
		return set, nil
	}
	fetched := s.refetch()
	if fetched == nil || w == nil {
		return nil, nil
	}
	if err := s.await(w, fetched); err != nil {
		return nil, err
	}
	if set := s.set.Load(); set != had {
		return set, nil
	}
	return nil, nil
}

// refetch joins the fetch that runs, or asks for one unless another was asked for within the cool-down.
func (s *KeySource) refetch() (fetched <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inflight != nil {
		return s.inflight
	}
	now := time.Now()
	if !s.live || !s.asked.IsZero() && now.Sub(s.asked) < s.o.Cooldown {
		return nil
	}
	s.asked = now
	s.inflight = make(chan struct{})
	select {
	case s.ask <- struct{}{}:
	default:
	}
	return s.inflight
}

// await waits until a fetch has ended, for as long as one may take.
func (s *KeySource) await(w Waiter, ended <-chan struct{}) error {
	err := w.Wait(func(ctx context.Context) {
		timer := time.NewTimer(s.o.Timeout)
		defer timer.Stop()
		select {
		case <-ended:
		case <-ctx.Done():
		case <-timer.C:
		}
	})
	if err != nil {
		return unavailable("keys are being fetched: " + err.Error())
	}
	return nil
}
