// Package conf answers what the gateway is told to do: it reads the TOML configuration, its includes and the scripts
// folder as one snapshot, applies the defaults, refuses what cannot be meant, and hands up plain data.
//
//	cfg, err := conf.Load("gateway.toml", conf.Options{})
//
// A *Config is immutable: whoever holds it may read it from any goroutine and must not write to it. Every part carries
// the position it was written at, and Config.Pos finds the position of any key, so that whoever finds a fault later
// (a route that shadows another, a setting that a script refuses) reports it as an Error with file and line.
//
// The package never opens a socket, runs a script or starts a goroutine.
package conf
