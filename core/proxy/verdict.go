package proxy

import "github.com/moongate/moongate/core"

// judge tells the endpoint's health, and its load where the balancer goes by it, what an answer's status says of the endpoint.
func (l *Leg) judge(status int) {
	l.weigh()
	if status >= 500 {
		l.attempt.Failed()
	} else {
		l.attempt.Succeeded()
	}
}

// weigh takes the time in which a client was sending its body off that of the try.
func (l *Leg) weigh() {
	if !l.attempt.Metered() {
		return
	}
	began, sent, streams := l.x.Times.Connected, core.Instant(l.upload.sent.Load()), l.upload.done != nil
	if l.round != nil {
		sent, streams = core.Instant(l.round.wrote.Load()), !l.round.body.none
	}
	if !streams {
		return
	}
	if sent < began {
		sent = core.Now()
	}
	l.attempt.Excuse(sent.Sub(began))
}
