# Tidemark: what a developer types. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

GOLANGCI := .ci/bin/golangci-lint
GOLANGCI_VERSION := v2.15.0
TOOL := go tool -modfile=.ci/tools/go.mod
# Runs a command with a real ClickHouse, which is fetched the first time.
SERVICES := bin/services run clickhouse --

# How long each fuzz target runs.
FUZZTIME ?= 4s
# Where `make run` and `make shop` serve, and whether they end once they have shown their answers.
LISTEN ?= 127.0.0.1:8080
ONCE ?=

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

.PHONY: build
build: ## the program, into bin/tidemark
	@go build -o bin/tidemark ./cmd/tidemark

.PHONY: run
run: build ## serve a live stream, and show what trends in it and what to try
	@LISTEN=$(LISTEN) ONCE=$(ONCE) cmd/tidemark/testdata/run.sh

.PHONY: shop
shop: build ## import a shop's seven months, serve them, and show three questions with their answers
	@LISTEN=$(LISTEN) ONCE=$(ONCE) cmd/tidemark/testdata/shop.sh

.PHONY: services
services: ## start a real ClickHouse and a real Kafka, and print their addresses (docs/services.md; `bin/services down` ends them)
	@bin/services up

services: bin/services

# Built each time: make does not see what Go depends on.
.PHONY: bin/services
bin/services:
	@go -C cmd/services build -trimpath -o ../../bin/services .

# Tests that compare whole data sets in one goroutine: the race detector has nothing
# to find there, and makes them ten to fifty times as slow.
ONE_GOROUTINE := ^Test(SealsAndCrashesBetweenTheSteps|FullDisk|WhatIsSealedIsReadBack|LevelsSayWhatTheSealsSay|DamageIsNeverAWrongNumber|OverflowIsRolledUp|PowerCut|BatchSizesSealTheSameBytes|OrderAndGroupingChangeNothing|OverTheBudgetTheTruthIsInsideTheBounds|AThousandSlotsFindTheTopOfABusyHour|ShuffledLogsSealTheSame|AnyQuestion|AnswersAreAsDeclared|RealSets|RealJSONIsReadAlike|WholeFiles|LongRecords)$$

.PHONY: test
test: lint arch fuzz ui-test bin/services ## everything that must hold: linters, rules of the repository, fuzzing, all tests
	@$(SERVICES) $(TOOL) gotestsum --format pkgname -- -shuffle=on -timeout 60m ./...
	@$(TOOL) gotestsum --format pkgname -- -race -shuffle=on -timeout 60m -skip '$(ONE_GOROUTINE)' ./sketches/... ./windows/... ./sinks ./sinks/sinkstest ./web/...

.PHONY: ui
ui: web/ui/node_modules ## the pages and scripts for browsers, into web/ui/dist, which the program embeds
	@node web/ui/build.mjs

.PHONY: ui-test
ui-test: web/ui/node_modules build ## what browsers run: types, tests, a fresh build equals web/ui/dist, pages in a real Chromium
	@cd web/ui && npx --no-install tsc --noEmit && npx --no-install vitest run --project client
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && node web/ui/build.mjs "$$fresh" && \
		diff -rq "$$fresh" web/ui/dist || { echo "web/ui/dist is not what its sources build: make ui"; exit 1; }
	@cd web/ui && npx --no-install vitest run --project browser

.PHONY: screenshots
screenshots: web/ui/node_modules build ## pictures of every page in every state, into web/ui/screenshots
	@cd web/ui && npx --no-install vitest run --project screenshots

web/ui/node_modules: web/ui/package-lock.json
	@npm --prefix web/ui ci
	@touch $@

.PHONY: race
race: bin/services ## the tests that compare whole data sets too with the race detector: half an hour
	@$(SERVICES) $(TOOL) gotestsum --format pkgname -- -race -shuffle=on -timeout 60m ./...

.PHONY: lint
lint: $(GOLANGCI) ## the linters, formatting and dead code
	@go mod tidy -diff
	@$(GOLANGCI) run --allow-parallel-runners
	@$(GOLANGCI) fmt --diff
	@go fix -diff ./...
	@dead=$$($(TOOL) deadcode -test ./...); if [ -n "$$dead" ]; then echo "code that nothing reaches:"; echo "$$dead"; exit 1; fi

.PHONY: fmt
fmt: $(GOLANGCI) ## format the code
	@$(GOLANGCI) fmt

# Not by go tool: its dependencies are a thousand lines that nothing else needs,
# and its makers advise a build of its own.
$(GOLANGCI): Makefile
	@GOBIN=$(CURDIR)/.ci/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@

.PHONY: arch
arch: ## the rules of the repository (uncached: go does not see what go list reads)
	@go test -count=1 ./cmd/archtest

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@.ci/fuzz $(FUZZTIME)

.PHONY: bench
bench: bin/services ## the figures of the README, as a table; raw lines for benchstat in bench.txt
	@$(SERVICES) .ci/bench bench.txt

.PHONY: soak
soak: bin/services ## hours: fuzzing, and tests of properties, each much longer and with fresh seeds
	@$(MAKE) fuzz FUZZTIME=10m
	@TIDEMARK_SOAK=1 RAPID_CHECKS=20000 $(SERVICES) go test -race -count=1 -shuffle=on -timeout 0 ./...

.PHONY: clean
clean: ## remove what builds leave behind
	@rm -rf bin .ci/bin bench.txt
