# Every target is one command a person would type; `make` alone lists them.
# All of them need Go; `make test` needs a C compiler as well, because the race detector is written in C.

FUZZTIME ?= 30s
BENCHTIME ?= 1s
EVENTS ?= 100000
OPS ?= 20000
SEED ?= 1
DURATION ?= 10m
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
PEERS = $(CURDIR)/docs/peers
LINT = go tool -modfile=tools/go.mod golangci-lint

# One setting for all builds shares their cache; only the race detector needs cgo.
export CGO_ENABLED = 0
test: export CGO_ENABLED = 1
# The linter's own cache stays in the clone.
export GOLANGCI_LINT_CACHE = $(CURDIR)/bin/lint-cache

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/plugpoll
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/plugpoll ./cmd/plugpoll

.PHONY: run
run: build ## show it: the daemon and a plugin on a fresh directory, until Ctrl-C
	@sh cmd/demo.sh bin/plugpoll

.PHONY: test
test: ## run all tests with the race detector (about a minute and a half)
	go test -race ./...

.PHONY: test-real
test-real: ## race the scanner for long, and measure filesystems that CI lacks (installs packages, five minutes)
	PLUGPOLL_REAL=1 CI=true go test -count=1 -timeout 20m -v -run 'TestRace' ./scanner
	.ci/real.sh

.PHONY: lint
lint: ## check the code's style (the first run builds the linter, about two minutes)
	$(LINT) run ./...
	$(LINT) fmt --diff

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt

.PHONY: cross
cross: ## build and vet, tests too, for each system we support
	@for os in linux windows darwin; do for arch in amd64 arm64; do \
		echo "$$os/$$arch"; \
		GOOS=$$os GOARCH=$$arch go build ./... && GOOS=$$os GOARCH=$$arch go vet ./... || exit 1; \
	done; done

.PHONY: noinotify
# One package at a time: several are hard on the tests that have a time to keep.
noinotify: ## run the tests of register and cmd where no inotify instance can be had
	go test -p 1 -count=1 -exec '$(CURDIR)/.ci/noinotify.sh' ./register/... ./cmd/...

# `go test -fuzz` takes one target of one package at a time.
.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s)
	@files=$$(go list -f '{{$$d := .Dir}}{{range .TestGoFiles}}{{$$d}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$$d}}/{{.}} {{end}}' ./...) || exit 1; \
	targets=$$(grep -Eo '^func Fuzz[A-Z0-9_][A-Za-z0-9_]*' /dev/null $$files | sed 's|/[^/]*:func |:|'); \
	[ -n "$$targets" ] || { echo 'no fuzz target found' >&2; exit 1; }; \
	for target in $$targets; do \
		echo "$${target#$(CURDIR)/}"; \
		go test -run '^$$' -fuzz "^$${target##*:}\$$" -fuzztime $(FUZZTIME) "$${target%:*}" || exit 1; \
	done

.PHONY: sim
sim: ## run the seeded simulations of state: ten seeds with EVENTS (100000) inputs each, and real scanners with OPS (20000) operations
	go test ./state -run '^TestSimulation' -count=1 -v -events $(EVENTS) -ops $(OPS)

.PHONY: histories
histories: ## have things happen at random to a whole node: 20,000 with gRPC, 200,000 without (about a minute)
	go test ./register -run '^TestRandom' -count=1 -v -random.ops 20000

.PHONY: soak
soak: ## run the simulation with one seed after another, from SEED (1) on, until one fails or Ctrl-C
	go test ./state -run '^TestSimulation$$' -count=1 -v -timeout 0 -soak -seed $(SEED) -events $(EVENTS)

.PHONY: bugs
bugs: ## plant each bug of state/testdata/bugs in a copy of the module, and have the simulation find it
	@sh state/testdata/bugs/run.sh

.PHONY: bench
bench: ## run the benchmarks of state and register
	go test -run '^$$' -bench . -skip '^Benchmark(Pace|Figures)$$' -benchmem -benchtime $(BENCHTIME) ./state ./register

.PHONY: bench-scan
bench-scan: ## measure scans and other ways of looking against what the system itself takes (about two minutes)
	go test -run '^$$' -bench '^BenchmarkScan$$' -benchtime $(BENCHTIME) -timeout 1h ./scanner

.PHONY: bench-pace
bench-pace: ## measure what the interval costs and gives, on an idle machine (eight minutes)
	go test -run '^$$' -bench '^BenchmarkPace$$' -benchtime 1x -timeout 1h ./register

.PHONY: bench-http
bench-http: ## measure registration beside a thousand status requests a second, on an idle machine (three minutes)
	go test -run '^$$' -bench '^BenchmarkHTTP$$' -benchtime 1x -timeout 1h ./cmd/plugpoll

.PHONY: bench-register
bench-register: ## measure registration beside the kubelet's figures, on an idle machine (six minutes; SHORT=1: to try it out, one)
	go test -run '^$$' -bench '^BenchmarkFigures$$' -benchtime 1x $(if $(SHORT),-short) -timeout 1h ./register

.PHONY: bench-cni
bench-cni: ## measure polls of a CNI directory, and reloads at a random moment beside go-cni's own Load, on an idle machine (three minutes)
	go test -run '^$$' -bench '^BenchmarkPoll$$' -benchtime $(BENCHTIME) ./register/cni
	go test -run '^$$' -bench '^BenchmarkReload$$' -benchtime 100x ./register/cni

.PHONY: peers
peers: ## hold plugpoll and the kubelet's plugin manager to the same rules, measure both and draw it in docs/peers, on an idle machine (eleven minutes; SHORT=1: six)
	@cd conformance/peers && mkdir -p $(PEERS) && { go run -mod=mod . $(if $(SHORT),-short) -keep $(PEERS)/figures.json; status=$$?; \
	printf '\nDrawn:\n'; go run -mod=mod ./plots -from $(PEERS)/figures.json -to $(PEERS) || status=1; exit $$status; }

.PHONY: peers-draw
peers-draw: ## draw docs/peers again, from the figures of the last run
	cd conformance/peers && go run ./plots -from $(PEERS)/figures.json -to $(PEERS)

# Without the race detector, for which all of Kubernetes would be built once more.
.PHONY: peers-check
peers-check: ## vet, test and lint conformance/peers, a module of its own (the first run builds a good part of Kubernetes, two minutes)
	cd conformance/peers && go vet ./... && go test ./...
	cd conformance/peers && go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run ./... && go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint fmt --diff

.PHONY: soak-plugins
soak-plugins: ## disturb 200 real plugin processes for DURATION (10m), and see what is left
	go test -run '^TestSoak$$' -count=1 -timeout 0 -v ./register -soak $(DURATION)

.PHONY: clean
clean: ## remove what the targets above left here
	rm -rf bin
