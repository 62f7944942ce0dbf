package main

import (
	"errors"

	"github.com/moongate/moongate/conf"
)

// newGateway makes the gateway of a configuration and binds its listeners.
func newGateway(gatewayOptions) (gateway, error) { return nil, errNotJoined }

// tryConfig reads a configuration and tries all that a reload tries.
func tryConfig(file string) (*conf.Config, error) { return conf.Load(file, conf.Options{}) }

var errNotJoined = errors.New("core/gateway is not joined yet")
