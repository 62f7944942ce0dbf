package metrics

// Redis is the state of a Redis client. Counts are since it was made.
type Redis struct {
	Up            bool
	Calls, Failed uint64 // the failed are among the calls
	Pending       int
}

// Redis tells of a Redis.
func (s *Scrape) Redis(name string, r Redis) {
	s.gauge(redisUp, number(r.Up), name)
	s.counter(redisCalls, float64(r.Calls-r.Failed), name, "success")
	s.counter(redisCalls, float64(r.Failed), name, "failure")
	s.gauge(redisPending, float64(r.Pending), name)
}
