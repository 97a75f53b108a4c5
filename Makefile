# make help lists everything, and CI (.ci/run) runs these same targets.

TOOL  := go tool -modfile=tools/tools.mod
PKGS  ?= ./...
# The race detector needs a C compiler.
RACE  := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)
# Go files of this repository, without what npm installed.
GOFILES = find . -name node_modules -prune -o -name '*.go' -print

.DEFAULT_GOAL := help
.PHONY: help build deps test test-three fmt fmt-check vet staticcheck lint tidy-check docs docs-check examples fuzz-short bench-once bench chaos chaos-short ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the commands into bin/
	@mkdir -p bin
	go build -o bin/ ./cmd/...

deps: ## fetch what tests need: Go modules and, where npm is present, the packages of the examples
	go mod download
	@.ci/npm-deps

test: deps ## run all tests, with the race detector where a C compiler is present
	@test -n "$(RACE)" || echo "no C compiler: testing without the race detector"
	go test $(RACE) -shuffle=on $(PKGS)

test-three: ## run the tests of the bus on three servers with every stream on each; RULES=REGEXP chooses among them
	JETCREW_NODES=3 go test -parallel 6 -shuffle=on -run '$(or $(RULES),.)' ./bus

fmt: ## format all Go files
	$(GOFILES) | xargs $(TOOL) gofumpt -w

fmt-check: ## fail if a Go file is not formatted
	@files="$$($(GOFILES) | xargs $(TOOL) gofumpt -l)"; \
	test -z "$$files" || { echo "not formatted (make fmt):"; echo "$$files"; exit 1; }

vet: ## run go vet
	go vet $(PKGS)

staticcheck: ## run staticcheck
	$(TOOL) staticcheck $(PKGS)

lint: staticcheck ## run staticcheck and the rules of .golangci.yml, such as who may import whom
	$(TOOL) golangci-lint run $(PKGS)

tidy-check: ## fail if go.mod or go.sum is not tidy
	go mod tidy -diff

docs: ## write the documents that are generated
	go run ./tools/wiredoc

docs-check: ## fail if a generated document is not what the code says
	go run ./tools/wiredoc -check

examples: ## build the examples and compare their output with the expected one
	@.ci/examples

fuzz-short: ## fuzz each target for a few seconds, two minutes in all
	@.ci/fuzz

bench-once: ## run each benchmark once, to see that it works
	go test -run '^$$' -bench . -benchtime 1x $(PKGS)
	go run ./bench run --rounds 1 --calls 50 --turns 3 --flood 500
	go run ./bench run --replicas 3 --tools idempotent --rounds 1 --calls 50 --turns 3 --flood 500
	go run ./bench stop --rounds 1

bench: ## measure beside the raw exchange, and write bench/results/
	@mkdir -p bench/results
	go run ./bench run --out bench/results/calls.md
	go run ./bench run --replicas 3 --rounds 5 --calls 500 --turns 50 --out bench/results/r3.md
	go run ./bench memory --out bench/results/memory.md
	go run ./bench recover --out bench/results/recover.md
	go run ./bench stop --out bench/results/stop.md

CHAOS = go test ./tools/chaos -run TestChaos -v -timeout 30m -args -chaos.seed $(or $(SEED),0)

chaos: ## break a fleet at random for ten minutes, on one server and on three; SEED=N SERVERS=N repeats what went wrong
ifdef SERVERS
	$(CHAOS) -chaos.for 10m -chaos.runs 200 -chaos.servers $(SERVERS)
else
	$(CHAOS) -chaos.for 5m -chaos.runs 100 -chaos.servers 1
	$(CHAOS) -chaos.for 5m -chaos.runs 100 -chaos.servers 3
	go test ./cmd/orchestrator -run TestReplayInAStorm -v -timeout 30m -args -storm.long
endif

chaos-short: ## the same for a minute, on one server
	$(CHAOS) -chaos.for 1m -chaos.runs 40 -chaos.servers $(or $(SERVERS),1)

ci: ## run all checks as CI does
	bash .ci/run

clean: ## remove what was built, and nothing else
	rm -rf bin dist
