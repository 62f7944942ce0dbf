package admin

import (
	"net/http"
	"time"
)

// Status is what GET /status says, as JSON: how the gateway is at this moment. Counts are since the process began, over all reloads, unless
// they say otherwise.
type Status struct {
	Version       string           `json:"version"`
	Generation    uint64           `json:"generation"`     // the one that serves new requests
	Started       time.Time        `json:"started"`        // of the process
	UptimeSeconds float64          `json:"uptime_seconds"` // since then
	Draining      bool             `json:"draining"`
	RefusedReload *RefusedReload   `json:"refused_reload,omitempty"` // the last one, when nothing was loaded since
	DroppedLines  uint64           `json:"dropped_log_lines"`        // of the access log
	Listeners     []string         `json:"listeners"`                // as URLs, and paths of Unix sockets
	Upstreams     []UpstreamStatus `json:"upstreams"`
	Filters       []FilterStatus   `json:"filters"`
	VMs           []VMStatus       `json:"vms"`
}

// RefusedReload tells of a reload that changed nothing: what is in the files is not what serves.
type RefusedReload struct {
	At     time.Time `json:"at"`
	Errors []string  `json:"errors"` // "file:line: what is wrong and what would be right"
}

// UpstreamStatus tells of one upstream.
type UpstreamStatus struct {
	Name      string           `json:"name"`
	Ready     int              `json:"ready"`             // endpoints that take requests
	Breaker   string           `json:"breaker,omitempty"` // "closed", "half-open" or "open"; none without one
	Endpoints []EndpointStatus `json:"endpoints"`
}

// EndpointStatus tells of one endpoint.
type EndpointStatus struct {
	Address     string       `json:"address"`
	Weight      int          `json:"weight"`
	Health      string       `json:"health"`      // "ready", "out" (requests have failed), "unhealthy" (checks have), or "drained" by weight 0
	Connections int          `json:"connections"` // open
	Idle        int          `json:"idle"`        // of them
	Check       *CheckStatus `json:"check,omitempty"`
}

// CheckStatus tells of an endpoint's active health.
type CheckStatus struct {
	Passed       uint64    `json:"passed"`
	Failed       uint64    `json:"failed"`
	Last         time.Time `json:"last,omitzero"` // when the last check ended; left away before the first
	Milliseconds float64   `json:"milliseconds"`  // that it took
	Error        string    `json:"error"`         // what it found; "" when the endpoint was well
}

// FilterStatus tells of one filter that runs on some route.
type FilterStatus struct {
	Name     string `json:"name"`
	Stage    string `json:"stage"`
	Script   string `json:"script"`
	Runs     uint64 `json:"runs"`
	Errors   uint64 `json:"errors"`   // time-outs among them
	Timeouts uint64 `json:"timeouts"` // functions that spent their time budget
	Trips    uint64 `json:"trips"`    // times that it was put to rest because all it did was fail
	Tripped  bool   `json:"tripped"`  // it rests now
}

// VMStatus tells of one stage's Lua machines.
type VMStatus struct {
	Stage     string            `json:"stage"`
	Size      int               `json:"size"`
	Busy      int               `json:"busy"`
	Waiting   int               `json:"waiting"` // for something outside
	Acquires  uint64            `json:"acquires"`
	Waits     uint64            `json:"waits"`     // acquires that had to wait
	Exhausted uint64            `json:"exhausted"` // that waited in vain
	Retired   map[string]uint64 `json:"retired"`   // machines dropped, by reason
}

func status(now func() Status) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, now()) }
}
