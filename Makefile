# "make help" lists the targets. CI runs .ci/run, which runs "make test".
.DEFAULT_GOAL := help
.PHONY: help build s3 prometheus test test-all test-alerts test-release fuzz race soak mutate lint vuln bench generate golden demo clean-demo image release clean

GO      ?= go
BIN     ?= $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE   ?= quorate.dev/quorate:$(VERSION)
# Tests are built like the binaries, so that shared packages are built once.
export CGO_ENABLED ?= 0
# Google Cloud Storage is accessed over HTTP: the gRPC dependencies of its library would add 13 MB to the program.
TAGS    := -tags disable_grpc_modules
TEST    := $(GO) test -trimpath $(TAGS) -timeout 30m
# Many tests require real programs or a real Kubernetes cluster; these variables locate them.
SANDBOX ?= test
export QUORATE_BIN := $(BIN)
export QUORATE_SANDBOX := $(SANDBOX)
REAL    := QUORATE_ETCD_DIR=$(BIN)/tools QUORATE_KUBE_APISERVER=$(BIN)/tools/kube-apiserver QUORATE_S3=$(BIN)/s3
# Tests in which all etcd versions must behave in the same way use one version, which depends on the commit. If it is
# empty, they use all versions.
ETCD_VERSION = $(shell ls $(BIN)/tools | sed -n 's/^etcd-//p' | sed -n "$$((0x$$(git rev-parse --short HEAD 2>/dev/null || echo 0) % 3 + 1))p")
SANDBOX_TEST := $(GO) -C sandbox test -trimpath -p 1 -count 1 -timeout 60m

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/quorate and bin/sandbox
	$(GO) build -trimpath $(TAGS) -ldflags "-s -w -X main.release=$(VERSION)" -o $(BIN)/quorate ./cmd/quorate
	$(GO) -C sandbox build -trimpath -o $(BIN)/sandbox ./cmd/sandbox

s3: ## build bin/s3, the store that tests back up to
	$(GO) -C sandbox build -trimpath -o $(BIN)/s3 ./cmd/s3

prometheus: ## build bin/prometheus, which scrapes the components of scenarios, with only Kubernetes service discovery
	$(GO) -C .ci/alerts build -trimpath -tags remove_all_sd,enable_kubernetes_sd -o $(BIN)/prometheus github.com/prometheus/prometheus/cmd/prometheus

$(BIN)/tools: build
	$(BIN)/sandbox build --tools $@

# Like go test, and records how long each test takes.
TIMED   = $(BIN)/gotestsum --format pkgname-and-test-fails --hide-summary skipped --jsonfile-timing-events $(BIN)/$(1).json --raw-command --
SLOWEST = echo 'The slowest tests:'; $(BIN)/gotestsum tool slowest --num 20 --jsonfile

$(BIN)/gotestsum: .ci/gotestsum/go.mod
	$(GO) -C .ci/gotestsum build -trimpath -o $@ gotest.tools/gotestsum

test: build s3 prometheus $(BIN)/tools $(BIN)/gotestsum ## test the packages, then scenarios on a sandbox, with one etcd version if all must behave in the same way; requires Linux and root
	$(BIN)/sandbox down --name $(SANDBOX) # the remains of an interrupted test would affect this one
	$(BIN)/sandbox up --name $(SANDBOX) --nodes 3
	trap '$(BIN)/sandbox down --name $(SANDBOX)' EXIT; export QUORATE_ETCD_VERSION=$(ETCD_VERSION); \
	$(REAL) QUORATE_SANDBOX_KUBECONFIG=$$($(BIN)/sandbox kubeconfig --name $(SANDBOX)) $(call TIMED,tests) $(TEST) -parallel 4 -json ./... && \
	$(MAKE) fuzz FUZZ='$(FUZZ_SOME)' && \
	$(MAKE) test-alerts && \
	$(MAKE) test-release && \
	$(call TIMED,scenarios) $(SANDBOX_TEST) -json ./...
	$(SLOWEST) $(BIN)/tests.json
	$(SLOWEST) $(BIN)/scenarios.json

test-all: ## like test, and repeat tests with all etcd versions; before a release
	$(MAKE) test ETCD_VERSION=

test-alerts: ## test the rules of deploy/monitoring with the Prometheus engine
	$(GO) -C .ci/alerts test -trimpath -count 1 $(TAGS) ./... # the cache does not track files of other modules

# Fuzz targets, as package:target:times. A count instead of a duration, because Go sometimes treats the end of a duration
# as a failure (golang/go issue 75804).
FUZZ    := gitsource/manifests:FuzzDecode:400 gitsource/manifests:FuzzRender:120 gitsource/gittree:FuzzTree:40000 \
           gitsource/pack:FuzzRead:40000 gitsource/remote:FuzzFetch:60000 gitsource/remote:FuzzParseAddress:60000 \
           gitsource/signature:FuzzVerify:100000 gitsource/signature:FuzzKeys:40000 clusters/etcd:FuzzObserve:500 \
           clusters:FuzzReadBack:700 clusters/backup/result:FuzzParseResult:10000 clusters/backup/result:FuzzParseRestored:10000 \
           reconcile/report/markdown:FuzzComment:4000
# make test fuzzes a quarter of the targets, selected by the commit, and runs the saved inputs of all targets.
FUZZ_SOME = $(shell printf '%s\n' $(FUZZ) | awk -v commit=$$((0x$$(git rev-parse --short HEAD 2>/dev/null || echo 0) / 3)) 'NR % 4 == commit % 4')

test-release: ## test the chart with the Helm engine, and how releases are built
	$(GO) -C .ci/release test -trimpath -count 1 $(TAGS) ./...

fuzz: ## fuzz the code that reads hostile input, each target as often as listed, or for FUZZTIME, within 2 GiB
	ulimit -d 2097152; for entry in $(FUZZ); do \
	target=$${entry#*:}; times=$(or $(FUZZTIME),$${entry##*:}x); \
	$(TEST) -run '^$$' -fuzz "^$${target%:*}$$" -fuzztime $$times -fuzzminimizetime 50x ./$${entry%%:*} || exit 1; done

race: build ## test the packages under the race detector; requires a C compiler
	CGO_ENABLED=1 $(TEST) -race ./...

soak: ## walk a simulated world for a million steps of git changes, faults, manual actions and passes, and try all pairs of manual actions, all small worlds and more random timings; STEPS and SEED override that
	QUORATE_SOAK_STEPS=$(or $(STEPS),1000000) QUORATE_SOAK_SEED=$(SEED) $(TEST) -timeout 0 -count 1 -v -run 'TestLongPaths|TestNothingWaitsForever' ./reconcile/simulate
	QUORATE_SOAK_PEOPLE=1 $(TEST) -timeout 0 -count 1 -v -run 'TestEvery.*(Deed|Sight|Incident|Moment|SmallWorld)|TestRandomDelays|RandomSourceTiming|StarveHealing' ./reconcile/...

mutate: ## change reconcile/decide in one place at a time, and report the changes that tests do not detect; MUTANTS='-stages 1-1 -only guards.go' selects a part
	ulimit -d 2097152; $(GO) run -trimpath ./.ci/mutate $(MUTANTS) reconcile/decide

lint: $(BIN)/golangci-lint ## check the style, the dependencies between packages, the go.mod files, and that it compiles for other systems
	$< run && cd sandbox && $< run
	GOOS=darwin $(GO) vet -trimpath ./... && GOOS=windows $(GO) vet -trimpath ./cmd/...
	$(GO) mod tidy -diff && $(GO) -C sandbox mod tidy -diff

$(BIN)/golangci-lint: .ci/tools/go.mod
	$(GO) -C .ci/tools build -trimpath -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

vuln: $(BIN)/govulncheck ## check linked code for known vulnerabilities; requires Internet access
	@curl -fsS --max-time 20 -o /dev/null https://vuln.go.dev/index/db.json || { echo 'vuln: the database of vulnerabilities, https://vuln.go.dev, cannot be reached from here; nothing was checked' >&2; exit 1; }
	$< ./... && cd sandbox && $< ./...

$(BIN)/govulncheck: .ci/vuln/go.mod
	$(GO) -C .ci/vuln build -trimpath -o $@ golang.org/x/vuln/cmd/govulncheck

bench: build s3 ## print measured figures, one per line: figure NAME VALUE UNIT
	$(TEST) -run '^$$' -bench . ./gitsource ./gitsource/manifests ./reconcile/forecast
	$(TEST) -run '^$$' -bench QuietFigures -benchtime 1x ./clusters
	QUORATE_FLEET=10000 $(TEST) -run '^$$' -bench QuietFigures -benchtime 1x ./clusters
	$(SANDBOX_TEST) -run '^$$' -bench . ./scenarios

generate: ## generate deep copies, the CustomResourceDefinition and reference pages
	$(GO) generate ./clusters/v1alpha1 && $(GO) generate ./... # pages include what the first command generates

golden: ## rewrite the golden files; read the diff before you commit it
	$(TEST) ./cmd/quorate ./clusters/objects ./clusters/schema ./gitsource ./gitsource/manifests ./gitsource/signature ./reconcile/decide ./reconcile/simulate ./reconcile/report ./reconcile/report/findings ./reconcile/report/markdown -rewrite

demo: build ## run the demo: a cluster of three from a git push, on a sandbox, or on CONTEXT=name of your kubeconfig
	testdata/demo/run.sh up '$(CONTEXT)' '$(if $(filter-out file,$(origin IMAGE)),$(IMAGE))'

clean-demo: build ## remove what the demo created
	testdata/demo/run.sh down $(CONTEXT)

image: build ## write an image of quorate, bin/quorate.tar, for docker, podman, ctr and skopeo
	$(BIN)/sandbox image $(IMAGE)=$(BIN)/quorate $(BIN)/quorate.tar

release: ## build a release of the tag VERSION in bin/release: programs, an image, a chart, checksums; see CONTRIBUTING.md
	$(GO) -C .ci/release run -trimpath $(TAGS) . -root $(CURDIR) -version '$(VERSION)' -out $(BIN)/release/$(VERSION) $(if $(REPOSITORY),-repository '$(REPOSITORY)')

clean: ## remove build output; the sandbox cache is kept
	rm -rf $(BIN)
