# The one entry point: people and CI call the same targets. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
FUZZTIME ?= 10s
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# Tools are pinned in tools/go.mod, a module of its own, so that what they need
# never reaches a user of the library.
TOOL := $(GO) tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/stint
	$(GO) build -trimpath -ldflags '-X main.release=$(VERSION)' -o bin/stint ./cmd/stint

.PHONY: deps
deps: ## what the tests need besides Go: a redis-server
	./scripts/install-test-deps

.PHONY: quick
quick: deps ## the loop while editing: vet, and every test in its short form
	$(GO) vet ./...
	$(GO) test -race -short -timeout 2m ./...

.PHONY: test
test: ## everything, the modules beside this one included
	GO='$(GO)' ./scripts/test

.PHONY: faults
faults: deps ## time and memory while a server is away; measured, so not under the race detector
	$(GO) test -tags faults -run '^TestFaults$$' -count=1 -timeout 3m -v ./redisstore

# Left empty, the short form that CI runs.
CHAOS ?=

.PHONY: chaos
chaos: deps ## break servers under load and check what callers were told; CHAOS=30m for each kind, recorded in docs/evidence.md
	@mkdir -p bin/chaos
	$(GO) test -tags chaos -run '^TestChaos' -count=1 -parallel 6 -timeout 6h -v -artifacts -outputdir $(CURDIR)/bin/chaos \
	  ./redisstore $(if $(CHAOS),-chaos.for=$(CHAOS) -chaos.record)

# The Valkey of the wheel is built without TLS; chaos has a target of its own.
.PHONY: valkey
valkey: deps ## the tests that ask a server, on Valkey in place of Redis
	./scripts/on-valkey $(GO) test -race -short -count=1 -timeout 5m -skip 'TLS|Sentinel|Chaos' ./redisstore/... ./cmd/stint/internal/doctor/...

.PHONY: lint
lint: ## golangci-lint, as .golangci.yml says, and that every go.mod is tidy
	$(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff
	$(TOOL) golangci-lint run ./...
	cd bench && $(TOOL) golangci-lint run --config ../.golangci.yml ./...

.PHONY: format
format: ## gofmt and the order of imports
	$(TOOL) golangci-lint fmt ./...
	cd bench && $(TOOL) golangci-lint fmt --config ../.golangci.yml ./...

.PHONY: fuzz
fuzz: ## every fuzz target, FUZZTIME each (10s)
	GO='$(GO)' ./scripts/fuzz '$(FUZZTIME)'

.PHONY: bench
bench: deps ## the figures about speed and size, as Markdown
	cd bench && $(GO) run ./cmd/figures

.PHONY: cover
cover: deps ## statement coverage of the whole module
	@mkdir -p bin
	$(GO) test -coverpkg=./... -coverprofile=bin/cover.out ./...
	$(GO) tool cover -func=bin/cover.out | tail -n 1

.PHONY: clean
clean: ## what was built here
	rm -rf bin
