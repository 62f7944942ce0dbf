# Moongate. `make help` lists the targets; what .ci/run calls is here.

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GO       ?= go
GOFLAGS  += -buildvcs=false
LDFLAGS  := -s -w -X main.version=$(VERSION)
CONFIG   ?= conf/gateway.toml
FUZZTIME ?= 10s
TOOL     := $(GO) tool -modfile=.ci/tools/go.mod

export GOFLAGS

# How long the tests of one package may take: a busy machine needs more than go test's ten minutes.
LIMIT ?= 30m

# The package whose tests take longest begins, so that no processor waits for it alone at the end.
LONGEST  := ./core/gateway

# The race detector needs a C compiler; tests run without it where there is none.
RACE     := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)

.DEFAULT_GOAL := help
.PHONY: help build run test race lint fmt fuzz bench e2e conformance check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/moongate
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/moongate ./cmd/moongate

run: build ## build and serve conf/gateway.toml with the demo upstreams (CONFIG=FILE for another)
	bin/moongate run -c $(CONFIG) --demo

test: ## all tests that need Go alone, with the race detector where there is a C compiler
	@[ -n '$(RACE)' ] || echo 'no C compiler or no cgo: the tests run without the race detector'
	$(GO) test $(RACE) -timeout $(LIMIT) $(LONGEST) ./...

race: ## the same tests, which must have the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout $(LIMIT) $(LONGEST) ./...

e2e: build ## the real binary against real curl, Redis, slapd and an OpenID provider, and Lua against lua5.1; fails where a tool is missing
	@for tool in bash curl lua5.1 redis-server /usr/sbin/slapd; do command -v $$tool >/dev/null || { echo "make e2e needs $$tool"; exit 1; }; done
	$(GO) test -tags e2e -count=1 -timeout $(LIMIT) $$(grep -rl --include='*_test.go' '^//go:build e2e' . | xargs -n1 dirname | sort -u)

lint: ## go vet, staticcheck, govulncheck, at the versions of .ci/tools/go.mod
	$(GO) vet ./...
	$(GO) vet -tags e2e ./...
	$(TOOL) staticcheck ./...
	@.ci/vulncheck $(TOOL) govulncheck

fmt: ## format every Go file
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

fuzz: ## each fuzz target for FUZZTIME (10s)
	@.ci/fuzz $(FUZZTIME)

conformance: build ## the wire tests and a set of WebSocket cases, then h2spec and the gRPC interop client, fetched by name
	$(GO) test -count=1 ./core/http1 ./core/proxyproto ./core/server
	$(GO) test -count=1 -run Conformance ./core/gateway
	@.ci/conformance

bench: build ## the micro-benchmarks, then CPU per request beside nginx and ReverseProxy (needs nginx with Lua, wrk and h2load)
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./cmd/bench

check: ## what must hold before a commit: formatted, linted, tested
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); [ -z "$$unformatted" ] || { echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; }
	$(MAKE) lint
	$(MAKE) test

clean: ## remove what was built
	rm -rf bin
