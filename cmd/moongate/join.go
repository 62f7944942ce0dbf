package main

import (
	"net/http"

	"github.com/moongate/moongate/core/gateway"
)

// pipeline makes the filters of a generation from the scripts of its configuration.
func pipeline() gateway.PipelineBuilder { return nil }

// metricsHandler renders the metrics.
func metricsHandler() http.Handler { return http.NotFoundHandler() }
