package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric's name, meaning and labels.
type family struct {
	name   string
	desc   *prometheus.Desc
	labels []string
}

func define(name, help string, labels ...string) family {
	return family{name, prometheus.NewDesc(name, help, labels, nil), labels}
}

// The metrics of the gateway. Labels: route, upstream, stage, script, limiter, redis, endpoint and url are of the configuration; class
// is 1xx to 5xx; result is success or failure, of copies also dropped; reason is one of those below.
var (
	httpRequests = define("moongate_http_requests_total",
		"Requests answered, by the route that took them and the upstream they went to (empty: answered here).", "route", "upstream", "class")
	httpDuration = define("moongate_http_request_duration_seconds",
		"Time from a request's head to the last byte of its answer.", "route", "upstream", "class")
	httpUnrouted = define("moongate_http_unrouted_requests_total",
		"Requests that no route took, or that were refused before a route was sought.", "class")

	httpCut = define("moongate_http_cut_requests_total",
		"Requests that the gateway ended before they were done: too slow with head or body, too slow a reader of the answer, or its own end.", "reason")

	connectionsOpen = define("moongate_http_open_connections",
		"Connections of clients that are open, idle ones included.")
	requestsInFlight = define("moongate_http_in_flight_requests",
		"Requests that have come and are not answered to the last byte.")

	upgradesOpen = define("moongate_upgrade_open_connections",
		"Connections of a route that have switched protocols and are open.", "route")
	upgrades = define("moongate_upgrade_connections_total",
		"Connections of a route that have switched protocols.", "route")

	tlsHandshakes = define("moongate_tls_handshakes_total",
		"TLS handshakes with clients that have ended.", "result")

	filterDuration = define("moongate_filter_duration_seconds",
		"Time that a script's function ran, waits included.", "stage", "script")
	filterErrors = define("moongate_filter_errors_total",
		"Runs of a script's function that ended in an error.", "stage", "script")
	filterTimeouts = define("moongate_filter_timeouts_total",
		"Runs of a script's function that spent their time budget.", "stage", "script")
	filterTrips = define("moongate_filter_trips_total",
		"Times that a script was put to rest because all it did was fail.", "stage", "script")
	filterTripped = define("moongate_filter_tripped",
		"Whether a script rests because all it did was fail: 1, or 0 while it runs.", "stage", "script")

	callDuration = define("moongate_call_duration_seconds",
		"Time to the end of the answers to requests that filters made with gw.http (upstream empty: to URLs).", "upstream")
	callErrors = define("moongate_call_errors_total",
		"Requests that filters made with gw.http and that got no answer (upstream empty: to URLs).", "upstream")
	mirrorRequests = define("moongate_mirror_requests_total",
		"Copies of requests that filters sent with gw.mirror; dropped ones found no room or had too long a body.", "upstream", "result")
	mirrorInFlight = define("moongate_mirror_in_flight_requests",
		"Copies of requests that are under way.")
	delayed = define("moongate_delay_waiting_requests",
		"Requests that gw.delay holds back now.")
	delays = define("moongate_delay_requests_total",
		"Requests that gw.delay has held back.")
	delaysRefused = define("moongate_delay_refused_total",
		"Delays that were refused because too many requests were held back.")

	limiterRefused = define("moongate_limiter_refused_total",
		"Takes that a limiter refused.", "limiter")
	limiterKeys = define("moongate_limiter_keys",
		"Keys of a limiter that are kept in memory.", "limiter")
	limiterOverflowed = define("moongate_limiter_overflowed_total",
		"Takes of keys that found no room in memory and shared what is left of their limiter.", "limiter")
	limiterStoreErrors = define("moongate_limiter_store_errors_total",
		"Times that a limiter could not ask its store.", "limiter")
	limiterDropped = define("moongate_limiter_dropped_leases_total",
		"Leases that a hybrid limiter did not fetch ahead, because too many were being fetched.", "limiter")

	vmPool    = definePool("moongate_vm_pool", "Lua VMs of a stage", "stage")
	vmRetired = define("moongate_vm_pool_retired_total",
		"Lua VMs of a stage that were dropped, and why: timeout, panic, uses (too many), epoch (the heap was over its ceiling).", "stage", "reason")
	vmWaiting = define("moongate_vm_pool_waiting",
		"Lua VMs of a stage that wait for something outside and are not counted as busy.", "stage")

	redisUp = define("moongate_redis_up",
		"Whether a Redis answers: 1, or 0 while it is unavailable.", "redis")
	redisCalls = define("moongate_redis_calls_total",
		"Calls to a Redis; failed are those that it did not answer in time, or that were not sent while it was unavailable.", "redis", "result")
	redisPending = define("moongate_redis_pending_calls",
		"Calls to a Redis that wait for its answer.", "redis")

	sharedStore = defineStore("moongate_shared", "a store of gw.shared", "store")
	cacheStore  = defineStore("moongate_cache", "a filter's gw.cache", "script")

	cacheLookups = define("moongate_cache_lookups_total",
		"Look-ups in a filter's cache: hit, miss (the value is made now), wait (for another request that makes it), stale (an old value stood in).",
		"script", "result")
	cacheLoads = define("moongate_cache_loads_total",
		"Runs of a filter's loaders.", "script", "result")
	timerRuns = define("moongate_timer_runs_total",
		"Runs of a filter's timers: success, failure, skipped (the run before took too long).", "script", "result")
	keyFetches = define("moongate_auth_key_fetches_total",
		"Tries to fetch a key set, by its URL or issuer.", "url", "result")
	keysKept = define("moongate_auth_keys",
		"Keys of a set that is fetched; 0 until the first fetch has succeeded.", "url")

	vmWaits = define("moongate_vm_waits_total",
		"Times that a Lua VM of a stage waited for an answer from outside.", "stage")
	vmWaitsRefused = define("moongate_vm_waits_refused_total",
		"Times that a Lua VM of a stage could not wait, since max_waiting others did.", "stage")
	upstreamPool = definePool("moongate_upstream_pool", "connections to an upstream", "upstream")

	upstreamRetries = define("moongate_upstream_retries_total",
		"Requests that were made once more because of what an endpoint answered.", "upstream")
	breakerState = define("moongate_upstream_breaker_state",
		"Circuit breaker of an upstream that has one: 0 closed, 1 half-open (a few requests try), 2 open (nobody is asked).", "upstream")
	breakerOpened = define("moongate_upstream_breaker_opened_total",
		"Times that an upstream's circuit breaker was opened.", "upstream")
	upstreamReady = define("moongate_upstream_ready_endpoints",
		"Endpoints of an upstream that take requests.", "upstream")
	endpointReady = define("moongate_upstream_endpoint_ready",
		"Whether an endpoint takes requests: 1, or 0 while it is out.", "upstream", "endpoint")

	endpointChecks = define("moongate_upstream_health_checks_total",
		"Checks of an endpoint's health that the gateway has made by itself.", "upstream", "endpoint", "result")
	endpointActive = define("moongate_upstream_endpoint_active_requests",
		"Requests that are under way at an endpoint whose upstream balances by that, WebSockets and streams until they end.", "upstream", "endpoint")
	endpointLatency = define("moongate_upstream_endpoint_latency_seconds",
		"Moving average of the time to an endpoint's answers, sensitive to peaks and errors, whose upstream balances by what endpoints carry.", "upstream", "endpoint")

	reloads = define("moongate_reload_attempts_total",
		"Tries to reload configuration and scripts.", "result")
	reloadSuccessful = define("moongate_reload_last_successful",
		"Whether the last try to reload succeeded: 1, or 0 while an older generation serves.")
	reloadTime = define("moongate_reload_last_success_timestamp_seconds",
		"When the generation that serves was loaded.")

	logDropped = define("moongate_log_dropped_lines_total",
		"Access log lines dropped because their reader was behind, or because they could not be written.")
	scriptOverflows = define("moongate_script_overflows_total",
		"Uses of script metrics that were counted under the label value overflow, since the metric had too many series.")
	buildInfo = define("moongate_build_info",
		"The gateway's version; always 1.", "version")
)

// Why a request was cut.
const (
	CutSlowHead   = "slow_head"   // its head took longer than it may
	CutSlowBody   = "slow_body"   // its body came too slowly
	CutSlowReader = "slow_reader" // the client did not take the answer in time
	CutDrained    = "drained"     // the gateway shut down
)

// poolFamily is what is told of a pool.
type poolFamily struct{ size, busy, acquires, waits, waited, exhausted family }

func definePool(prefix, what, label string) poolFamily {
	return poolFamily{
		size:      define(prefix+"_size", "Open "+what+".", label),
		busy:      define(prefix+"_busy", "Open "+what+" that are in use.", label),
		acquires:  define(prefix+"_acquires_total", "Times that one of the "+what+" was taken.", label),
		waits:     define(prefix+"_waits_total", "Times that a request had to wait for one of the "+what+".", label),
		waited:    define(prefix+"_wait_seconds_total", "Time that requests waited for one of the "+what+".", label),
		exhausted: define(prefix+"_exhausted_total", "Times that a request got none of the "+what+" within its wait.", label),
	}
}

func (p *poolFamily) all() []family {
	return []family{p.size, p.busy, p.acquires, p.waits, p.waited, p.exhausted}
}

// storeFamily is what is told of a store.
type storeFamily struct{ entries, bytes, capacity, evicted, expired family }

func defineStore(prefix, what, label string) storeFamily {
	return storeFamily{
		entries:  define(prefix+"_entries", "Entries of "+what+".", label),
		bytes:    define(prefix+"_bytes", "Memory that the entries of "+what+" take.", label),
		capacity: define(prefix+"_capacity_bytes", "Memory that the entries of "+what+" may take.", label),
		evicted:  define(prefix+"_evicted_total", "Entries of "+what+" that were forgotten because it was full.", label),
		expired:  define(prefix+"_expired_total", "Entries of "+what+" whose time was over.", label),
	}
}

func (f *storeFamily) all() []family {
	return []family{f.entries, f.bytes, f.capacity, f.evicted, f.expired}
}

// families lists every metric of the gateway's own.
func families() []family {
	all := []family{
		httpRequests, httpDuration, httpUnrouted, httpCut, connectionsOpen, requestsInFlight, upgradesOpen, upgrades, tlsHandshakes, filterDuration, filterErrors, filterTimeouts, filterTrips, filterTripped,
		vmRetired, vmWaiting, vmWaits, vmWaitsRefused, callDuration, callErrors, mirrorRequests, mirrorInFlight, delayed, delays, delaysRefused, limiterRefused,
		keyFetches, keysKept,
		limiterKeys, limiterOverflowed, limiterStoreErrors, limiterDropped, redisUp, redisCalls, redisPending,
		upstreamReady, upstreamRetries, breakerState, breakerOpened, endpointReady, endpointChecks, endpointActive, endpointLatency, reloads, reloadSuccessful, reloadTime, logDropped, scriptOverflows, buildInfo,
		cacheLookups, cacheLoads, timerRuns,
	}
	return slices.Concat(all, vmPool.all(), upstreamPool.all(), sharedStore.all(), cacheStore.all())
}

// Names lists every metric of the gateway's own, so that dashboards and alerts can be checked against it. A histogram's name
// stands without _bucket, _sum and _count.
func Names() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}
