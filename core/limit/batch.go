package limit

import "slices"

// batch asks several limiters of one store in one round trip.
type batch struct {
	store   *Store
	members []*Remote
	mode    string
}

// batchOf gives the batch of limiters that are all in the same store; nil when they are not.
func batchOf(members []Limiter, mode string) *batch {
	b := &batch{mode: mode}
	for _, m := range members {
		r, is := m.(*Remote)
		if !is || b.store != nil && b.store != r.store {
			return nil
		}
		b.store = r.store
		b.members = append(b.members, r)
	}
	return b
}

// take gives the decision of each member. Of those that must all grant, what one refused was charged to none.
func (b *batch) take(key string, cost int64) []Decision {
	decisions, err := b.ask(b.mode, key, cost)
	if err != nil {
		return b.without(key, cost)
	}
	granted := false
	for _, d := range decisions {
		granted = granted || d.OK
	}
	for i, d := range decisions {
		if !d.OK && (b.mode == modeAll || !granted) {
			b.members[i].refused.Add(1)
		}
	}
	return decisions
}

func (b *batch) peek(key string, cost int64) []Decision {
	decisions, err := b.ask(modePeek, key, cost)
	if err != nil {
		decisions = nil
		for _, m := range b.members {
			decisions = append(decisions, m.local.Peek(key, cost))
		}
	}
	return decisions
}

func (b *batch) ask(mode, key string, cost int64) ([]Decision, error) {
	q := newQuestion(mode, cost)
	for _, m := range b.members {
		q.about(m.op.Load(), m.key(key))
	}
	if cost < 0 {
		return b.never(q), nil
	}
	if err := b.store.ask(q); err != nil {
		for _, m := range b.members {
			m.away.Add(1)
		}
		return nil, err
	}
	decisions := slices.Clone(q.decisions)
	q.free()
	return decisions, nil
}

// never is what all say to a cost that nobody grants.
func (b *batch) never(q *question) (decisions []Decision) {
	for _, op := range q.ops {
		decisions = append(decisions, Decision{Limit: op.limit, RetryAfter: Never})
	}
	return decisions
}

// without decides while the store is away.
func (b *batch) without(key string, cost int64) (decisions []Decision) {
	for i, m := range b.members {
		d := m.without(key, cost)
		decisions = append(decisions, d)
		switch {
		case b.mode == modeFirst && d.OK:
			return decisions
		case b.mode == modeAll && !d.OK:
			for _, charged := range b.members[:i] {
				charged.local.Return(key, cost)
			}
			return decisions
		}
	}
	return decisions
}
