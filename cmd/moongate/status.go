package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/moongate/moongate/core/admin"
	"github.com/moongate/moongate/core/upstream"
)

func statusVerb() verb {
	return verb{
		name: "status",
		does: "tell how the running gateway is",
		about: `usage: moongate status [--json] [--admin ADDRESS] [-c FILE]

Asks the admin listener of a running gateway and prints what it says: the generation that serves and since when, the listeners, what
is wrong with the last reload if it was refused, lines that the access log has lost, the upstreams with the health of their endpoints, the filters with what became of them, the Lua machines of the stages. --json prints
the answer of GET /status as it is.

The address and the token are those of [admin] in the configuration; --admin and $MOONGATE_ADMIN_TOKEN go before.`,
		declare: func(fs *flag.FlagSet) func(streams) error {
			file := configFlag(fs)
			asJSON := fs.Bool("json", false, "print JSON")
			address := fs.String("admin", "", "`ADDRESS` the admin listener's, instead of the configuration's")
			return func(s streams) error {
				var now admin.Status
				if err := adminDoor(*file, *address).call(http.MethodGet, "/status", &now); err != nil {
					return err
				}
				if *asJSON {
					enc := json.NewEncoder(s.out)
					enc.SetIndent("", "  ")
					return enc.Encode(now)
				}
				return printStatus(s.out, &now)
			}
		},
	}
}

// status is what the admin listener tells.
func (a *app) status() admin.Status {
	g := a.gateway.Generation()
	s := admin.Status{
		Version: release(), Generation: uint64(g.Number), Started: a.started.UTC(), UptimeSeconds: time.Since(a.started).Seconds(),
		Draining: a.gateway.Draining(), RefusedReload: a.refused.Load(), DroppedLines: a.access.Dropped(), Listeners: a.gateway.URLs(),
		Upstreams: []admin.UpstreamStatus{}, Filters: []admin.FilterStatus{}, VMs: []admin.VMStatus{},
	}
	g.EachUpstream(func(u *upstream.Upstream) { s.Upstreams = append(s.Upstreams, upstreamStatus(u)) })
	if p := a.scripts.live.Load(); p != nil {
		for _, f := range p.Filters() {
			s.Filters = append(s.Filters, admin.FilterStatus{Name: f.Name, Stage: f.Stage, Script: f.Script, Runs: f.Runs, Errors: f.Errors, Timeouts: f.Timeouts,
				Trips: f.Trips, Tripped: f.Tripped})
		}
		for _, v := range p.Pools() {
			s.VMs = append(s.VMs, admin.VMStatus{Stage: v.Stage, Size: v.Size, Busy: v.InUse, Waiting: v.Waiting, Acquires: v.Acquires, Waits: v.Waits,
				Exhausted: v.Exhausted, Retired: v.Retired})
		}
	}
	return s
}

func upstreamStatus(u *upstream.Upstream) admin.UpstreamStatus {
	s := admin.UpstreamStatus{Name: u.Name()}
	if state, _, ok := u.Breaker(); ok {
		s.Breaker = state.String()
	}
	for _, e := range u.Endpoints() {
		conns := u.Pool(e).Stats()
		s.Endpoints = append(s.Endpoints, admin.EndpointStatus{
			Address: e.Label(), Weight: e.Weight, Health: u.Standing(e), Connections: conns.Open, Idle: conns.Idle, Check: checkStatus(u.Checked(e)),
		})
		if u.IsReady(e) {
			s.Ready++
		}
	}
	return s
}

// checkStatus is nil for an endpoint that is not checked.
func checkStatus(c upstream.Checked) *admin.CheckStatus {
	if !c.On {
		return nil
	}
	s := &admin.CheckStatus{Passed: c.Passed, Failed: c.Failed, Milliseconds: float64(c.Took) / float64(time.Millisecond)}
	if c.At != 0 {
		s.Last = c.At.Wall().UTC()
	}
	if c.Err != nil {
		s.Error = c.Err.Error()
	}
	return s
}

// printStatus prints tables for people.
func printStatus(out io.Writer, s *admin.Status) error {
	fmt.Fprintf(out, "moongate %s, generation %d, up %s since %s\n", s.Version, s.Generation, uptime(s.UptimeSeconds), s.Started.Format(time.RFC3339))
	if s.Draining {
		fmt.Fprintln(out, "draining: it takes no new connections")
	}
	fmt.Fprintf(out, "serving on %s\n", strings.Join(s.Listeners, ", "))
	if r := s.RefusedReload; r != nil {
		fmt.Fprintf(out, "the reload at %s was refused, what it had before serves:\n", r.At.Format(time.RFC3339))
		for _, line := range r.Errors {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	if s.DroppedLines > 0 {
		fmt.Fprintf(out, "the access log has lost %s\n", plural(int(s.DroppedLines), "line"))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nUPSTREAM\tENDPOINT\tWEIGHT\tHEALTH\tCONNECTIONS\tIDLE\n")
	for _, u := range s.Upstreams {
		for _, e := range u.Endpoints {
			row(w, u.Name, e.Address, e.Weight, e.Health, e.Connections, e.Idle)
		}
	}
	breakers := "\nUPSTREAM\tBREAKER\n"
	for _, u := range s.Upstreams {
		if u.Breaker != "" {
			fmt.Fprint(w, breakers)
			row(w, u.Name, u.Breaker)
			breakers = ""
		}
	}
	printChecks(w, s.Upstreams)
	if len(s.Filters) > 0 {
		fmt.Fprint(w, "\nSTAGE\tFILTER\tRUNS\tERRORS\tTIMEOUTS\tTRIPS\tSTATE\n")
	}
	for _, f := range s.Filters {
		state := "runs"
		if f.Tripped {
			state = "rests"
		}
		row(w, f.Stage, f.Name, f.Runs, f.Errors, f.Timeouts, f.Trips, state)
	}
	if len(s.VMs) > 0 {
		fmt.Fprint(w, "\nSTAGE\tVMS\tBUSY\tWAITING\tACQUIRES\tWAITS\tEXHAUSTED\tRETIRED\n")
	}
	for _, v := range s.VMs {
		row(w, v.Stage, v.Size, v.Busy, v.Waiting, v.Acquires, v.Waits, v.Exhausted, reasons(v.Retired))
	}
	return w.Flush()
}

// printChecks prints a table of the endpoints that are checked, when there are some.
func printChecks(w io.Writer, upstreams []admin.UpstreamStatus) {
	head := "\nCHECKED\tENDPOINT\tPASSED\tFAILED\tLAST\n"
	for _, u := range upstreams {
		for _, e := range u.Endpoints {
			c := e.Check
			if c == nil {
				continue
			}
			last := "none yet"
			switch {
			case c.Error != "":
				last = c.Error
			case !c.Last.IsZero():
				last = "passed"
			}
			fmt.Fprint(w, head)
			row(w, u.Name, e.Address, c.Passed, c.Failed, last)
			head = ""
		}
	}
}

func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			io.WriteString(w, "\t")
		}
		fmt.Fprint(w, c)
	}
	io.WriteString(w, "\n")
}

// reasons lists why machines were dropped, such as "timeout 2, uses 1".
func reasons(retired map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(retired)) {
		if n := retired[name]; n > 0 {
			list = append(list, name+" "+strconv.FormatUint(n, 10))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func uptime(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
