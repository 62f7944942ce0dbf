package gateway

import "github.com/moongate/moongate/core"

type routeSeries struct{}

func (*routeSeries) observe(*core.Exchange) {}
