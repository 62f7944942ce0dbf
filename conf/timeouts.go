package conf

import "time"

// Timeouts are the time limits of one exchange with an upstream. Those of a route are complete: what the route does not
// say is the upstream's, cut down to what the route's own limits let happen.
type Timeouts struct {
	Pos       Pos
	Connect   time.Duration
	FirstByte time.Duration // from the request's end to the answer's head, each try
	IdleRead  time.Duration // between two reads of the answer
	Total     time.Duration // from the end of the request stages over all tries to the head
	BodyTotal time.Duration // for the answer's body; 0: none

	UpgradeIdle time.Duration // without a byte either way on a connection that has switched protocols
}

// Equal tells whether two say the same, wherever they stand.
func (t Timeouts) Equal(other Timeouts) bool { return same(t, other) }

func defaultTimeouts() Timeouts {
	return Timeouts{
		Connect:   time.Second,
		FirstByte: 10 * time.Second,
		IdleRead:  30 * time.Second,
		Total:     15 * time.Second,

		UpgradeIdle: time.Hour,
	}
}

var timeoutsSection = section[Timeouts]{
	duration("connect", func(t *Timeouts) *time.Duration { return &t.Connect }, shortest, longest),
	duration("first_byte", func(t *Timeouts) *time.Duration { return &t.FirstByte }, shortest, longest),
	duration("idle_read", func(t *Timeouts) *time.Duration { return &t.IdleRead }, shortest, longest),
	duration("total", func(t *Timeouts) *time.Duration { return &t.Total }, shortest, longest),
	duration("body_total", func(t *Timeouts) *time.Duration { return &t.BodyTotal }, shortest, longest),
	duration("upgrade_idle", func(t *Timeouts) *time.Duration { return &t.UpgradeIdle }, shortest, longest),
}

// checkTimeouts refuses a limit written at path that an outer one never lets happen, and cuts one down that only is a
// default or inherited.
func (b *binder) checkTimeouts(path string, t *Timeouts) {
	b.within(path+".connect", &t.Connect, path+".total", t.Total)
	b.within(path+".first_byte", &t.FirstByte, path+".total", t.Total)
	if t.BodyTotal > 0 && b.written(path+".idle_read") {
		b.within(path+".idle_read", &t.IdleRead, path+".body_total", t.BodyTotal)
	}
}

// within keeps an inner limit below an outer one.
func (b *binder) within(key string, inner *time.Duration, outerKey string, outer time.Duration) {
	if *inner <= outer {
		return
	}
	if !b.written(key) {
		*inner = outer
		return
	}
	_, name, _ := cutLast(outerKey)
	origin := "here"
	if !b.written(outerKey) {
		origin = "by default or from the upstream"
	}
	b.errs.Add(b.pos[key], key, "%s never happens, because %s, %s %s, ends first: lower it or raise %s",
		formatDuration(*inner), name, formatDuration(outer), origin, name)
}
