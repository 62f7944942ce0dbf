package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/moongate/moongate/conf"
	"github.com/moongate/moongate/core/limit"
	"github.com/moongate/moongate/luaapi"
)

// simOptions are the flags of limit-sim.
type simOptions struct {
	log     string
	config  string
	limiter string
	rate    string
	burst   int64
	quota   string
	zone    string
	key     string
	svg     string
	top     int
}

func limitSimVerb() verb {
	o := new(simOptions)
	return verb{
		name:  "limit-sim",
		does:  "replay an access log against a limiter, and tell who would have been refused",
		takes: "ACCESS_LOG",
		given: &o.log,
		about: `usage: moongate limit-sim ACCESS_LOG (--limiter NAME [-c FILE] | --rate RATE [--burst N] | --quota N/WINDOW [--zone ZONE])
                          [--key KIND] [--svg FILE] [--top N]

Reads the JSON lines of an access log ("-" is standard input) and asks a limiter of that configuration, or of these settings, about
each request at the time when it came. Nothing is waited for and no gateway is asked; state is kept here even if the limiter has a
Redis. It prints how many would have been refused and whom they would have hit; --svg draws both over time.

  moongate limit-sim access.log --rate 10/s --burst 20
  moongate limit-sim access.log --limiter partners -c gateway.toml --key user --svg refusals.svg`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			fs.StringVar(&o.limiter, "limiter", "", "`NAME` of a [limiter.NAME] of the configuration")
			fs.StringVar(&o.rate, "rate", "", "`RATE` of a token bucket, such as 5/s")
			fs.Int64Var(&o.burst, "burst", 0, "`N` requests at once; 0: the count of the rate")
			fs.StringVar(&o.quota, "quota", "", "`N/WINDOW` by the calendar, such as 1000/day")
			fs.StringVar(&o.zone, "zone", "UTC", "`ZONE` of the calendar")
			fs.StringVar(&o.key, "key", "ip", "`KIND` whom to count: ip, user, route or global")
			fs.StringVar(&o.svg, "svg", "", "`FILE` to draw into")
			fs.IntVar(&o.top, "top", 10, "`N` keys that are listed")
			return func(s streams) error {
				o.config = *file
				return simulate(*o, s.out)
			}
		},
	}
}

// simulate replays and prints.
func simulate(o simOptions, out io.Writer) error {
	if !slices.Contains([]string{"ip", "user", "route", "global"}, o.key) {
		return usagef("--key: %q is no kind of key: ip, user, route or global", o.key)
	}
	events, skipped, err := readEvents(o.log, o.key)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf("%s has no line of an access log", o.log)
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	clock := &simClock{start: events[0].at}
	limiter, name, err := o.limit(clock)
	if err != nil {
		return err
	}
	r := replay(events, limiter, clock)
	r.print(out, name, o.top)
	if skipped > 0 {
		fmt.Fprintf(out, "left out: %s that no access log has\n", plural(skipped, "line"))
	}
	if o.svg == "" {
		return nil
	}
	if err := os.WriteFile(o.svg, r.draw(name), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(out, "drawn into %s\n", o.svg)
	return nil
}

// simClock is the time of the request that is replayed.
type simClock struct{ start, now time.Time }

func (c *simClock) since() time.Duration { return c.now.Sub(c.start) }
func (c *simClock) wall() time.Time      { return c.now }

// limit makes the limiter that is asked.
func (o *simOptions) limit(clock *simClock) (l limit.Limiter, name string, err error) {
	clock.now = clock.start
	plan := new(limit.Registry).Plan()
	declare := func(name string, l *conf.Limiter) error {
		options := luaapi.LimiterOptions(l)
		options.Hybrid, options.Clock, options.Wall = false, clock.since, clock.wall
		_, err := plan.Declare(name, options)
		return err
	}
	switch given := count(o.limiter != "", o.rate != "", o.quota != ""); {
	case given != 1:
		return nil, "", usagef("wants one of --limiter, --rate and --quota")
	case o.limiter == "":
		var settings conf.Limiter
		if settings, name, err = o.settings(); err != nil {
			return nil, "", usageError(err.Error())
		}
		if err := declare(name, &settings); err != nil {
			return nil, "", err
		}
		return plan.Get(name), name, nil
	}
	c, err := conf.Load(o.config, conf.Options{})
	if err != nil {
		return nil, "", fmt.Errorf("%s is wrong:\n%w", o.config, err)
	}
	settings := c.Limiter(o.limiter)
	switch {
	case settings == nil:
		return nil, "", fmt.Errorf("%s has no [limiter.%s]", o.config, o.limiter)
	case settings.Concurrency > 0:
		return nil, "", fmt.Errorf("limiter %q counts what is under way, which cannot be replayed: rates and quotas can", o.limiter)
	}
	for _, member := range append(slices.Clone(settings.All), settings.First...) {
		if err := declare(member, c.Limiter(member)); err != nil {
			return nil, "", err
		}
	}
	if err := declare(o.limiter, settings); err != nil {
		return nil, "", err
	}
	return plan.Get(o.limiter), o.limiter, nil
}

// settings are those of the command line, with a name that tells them.
func (o *simOptions) settings() (l conf.Limiter, name string, err error) {
	if o.quota != "" {
		if l.Quota, err = conf.ParseQuota(o.quota); err != nil {
			return l, "", err
		}
		l.Zone = o.zone
		_, err = time.LoadLocation(o.zone)
		return l, "quota " + l.Quota.String(), err
	}
	if l.Rate, err = conf.ParseRate(o.rate); err != nil {
		return l, "", err
	}
	l.Burst = cmp.Or(o.burst, min(l.Rate.Count, conf.MaxBurst))
	return l, fmt.Sprintf("rate %s, burst %d", l.Rate, l.Burst), l.Rate.Check(l.Burst)
}

func count(claims ...bool) (n int) {
	for _, is := range claims {
		if is {
			n++
		}
	}
	return n
}
