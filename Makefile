# "make help" lists the targets. What CI runs is .ci/run, which is "make test".
.DEFAULT_GOAL := help
.PHONY: help build s3 prometheus test test-alerts test-release fuzz race soak mutate lint vuln bench generate golden demo clean-demo image release clean

GO      ?= go
BIN     ?= $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE   ?= quorate.dev/quorate:$(VERSION)
# Tests are built as the binaries are, so that what both have in common is built once.
export CGO_ENABLED ?= 0
# Google Cloud Storage is asked by HTTP: what its library needs for gRPC would be 13 MB of the program.
TAGS    := -tags disable_grpc_modules
TEST    := $(GO) test -trimpath $(TAGS) -timeout 30m
# Many tests want real programs, or a real Kubernetes cluster: these variables say where they are.
SANDBOX ?= test
export QUORATE_BIN := $(BIN)
export QUORATE_SANDBOX := $(SANDBOX)
REAL    := QUORATE_ETCD_DIR=$(BIN)/tools QUORATE_KUBE_APISERVER=$(BIN)/tools/kube-apiserver QUORATE_S3=$(BIN)/s3
SANDBOX_TEST := $(GO) -C sandbox test -trimpath -p 1 -count 1 -timeout 60m

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/quorate and bin/sandbox
	$(GO) build -trimpath $(TAGS) -ldflags "-s -w -X main.release=$(VERSION)" -o $(BIN)/quorate ./cmd/quorate
	$(GO) -C sandbox build -trimpath -o $(BIN)/sandbox ./cmd/sandbox

s3: ## build bin/s3, the store that tests back up to
	$(GO) -C sandbox build -trimpath -o $(BIN)/s3 ./cmd/s3

prometheus: ## build bin/prometheus, which scenarios have scrape what they run: of its service discoveries, that of Kubernetes alone
	$(GO) -C .ci/alerts build -trimpath -tags remove_all_sd,enable_kubernetes_sd -o $(BIN)/prometheus github.com/prometheus/prometheus/cmd/prometheus

$(BIN)/tools: build
	$(BIN)/sandbox build --tools $@

test: build s3 prometheus $(BIN)/tools ## test everything: the packages, then scenarios on a sandbox; it takes Linux and root
	$(BIN)/sandbox down --name $(SANDBOX) # what a test that was interrupted has left would take part in this one
	$(BIN)/sandbox up --name $(SANDBOX) --nodes 3
	trap '$(BIN)/sandbox down --name $(SANDBOX)' EXIT; \
	$(REAL) QUORATE_SANDBOX_KUBECONFIG=$$($(BIN)/sandbox kubeconfig --name $(SANDBOX)) $(TEST) ./... && \
	$(MAKE) fuzz && \
	$(MAKE) test-alerts && \
	$(MAKE) test-release && \
	$(SANDBOX_TEST) ./...

test-alerts: ## test the rules of deploy/monitoring with the engine of Prometheus
	$(GO) -C .ci/alerts test -trimpath -count 1 $(TAGS) ./... # the cache knows nothing of files of another module

# What is fuzzed, as package:target:times. A number of times, since Go takes the end of a length of time for a failure now
# and then (golang/go issue 75804).
FUZZ    := gitsource/manifests:FuzzDecode:400 gitsource/manifests:FuzzRender:120 gitsource/gittree:FuzzTree:40000 \
           gitsource/pack:FuzzRead:40000 gitsource/remote:FuzzFetch:60000 gitsource/remote:FuzzParseAddress:60000 \
           gitsource/signature:FuzzVerify:100000 gitsource/signature:FuzzKeys:40000 clusters/etcd:FuzzObserve:500 \
           clusters:FuzzReadBack:700 clusters/backup/result:FuzzParseResult:10000 clusters/backup/result:FuzzParseRestored:10000 \
           clusters/backup/result:FuzzReread:1000 reconcile/report/markdown:FuzzComment:4000

test-release: ## test the chart with the engine of Helm, and how releases are made
	$(GO) -C .ci/release test -trimpath -count 1 $(TAGS) ./...

fuzz: ## fuzz what reads hostile input, each target as often as listed, or for FUZZTIME, in 2 GiB
	ulimit -d 2097152; for entry in $(FUZZ); do \
	target=$${entry#*:}; times=$(or $(FUZZTIME),$${entry##*:}x); \
	$(TEST) -run '^$$' -fuzz "^$${target%:*}$$" -fuzztime $$times -fuzzminimizetime 50x ./$${entry%%:*} || exit 1; done

race: build ## test the packages under the race detector; it takes a C compiler
	CGO_ENABLED=1 $(TEST) -race ./...

soak: ## walk a simulated world for a million steps of git changes, faults, people and passes, and try all pairs of deeds; STEPS and SEED change that
	QUORATE_SOAK_STEPS=$(or $(STEPS),1000000) QUORATE_SOAK_SEED=$(SEED) $(TEST) -timeout 0 -count 1 -v -run 'TestLongPaths|TestNothingWaitsForever' ./reconcile/simulate
	QUORATE_SOAK_PEOPLE=1 $(TEST) -timeout 0 -count 1 -v -run 'TestEvery.*(Deed|Sight|Incident|SmallWorld)' ./reconcile/...

mutate: ## change reconcile/decide in one place after the other, and tell what no test notices; MUTANTS='-stages 1 -only guards.go' for a part
	ulimit -d 2097152; $(GO) run -trimpath ./.ci/mutate $(MUTANTS) reconcile/decide

lint: $(BIN)/golangci-lint ## check the style, the arrows between packages, the go.mod files, and that it compiles elsewhere
	$< run && cd sandbox && $< run
	GOOS=darwin $(GO) vet -trimpath ./... && GOOS=windows $(GO) vet -trimpath ./cmd/...
	$(GO) mod tidy -diff && $(GO) -C sandbox mod tidy -diff

$(BIN)/golangci-lint: .ci/tools/go.mod
	$(GO) -C .ci/tools build -trimpath -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

vuln: $(BIN)/govulncheck ## look for known vulnerabilities in what is linked in; it takes the Internet
	@curl -fsS --max-time 20 -o /dev/null https://vuln.go.dev/index/db.json || { echo 'vuln: the database of vulnerabilities, https://vuln.go.dev, cannot be reached from here; nothing was checked' >&2; exit 1; }
	$< ./... && cd sandbox && $< ./...

$(BIN)/govulncheck: .ci/vuln/go.mod
	$(GO) -C .ci/vuln build -trimpath -o $@ golang.org/x/vuln/cmd/govulncheck

bench: build s3 ## print measured figures, a line each: figure NAME VALUE UNIT
	$(TEST) -run '^$$' -bench . ./gitsource ./gitsource/manifests ./reconcile/road
	$(TEST) -run '^$$' -bench QuietFigures -benchtime 1x ./clusters
	QUORATE_FLEET=10000 $(TEST) -run '^$$' -bench QuietFigures -benchtime 1x ./clusters
	$(SANDBOX_TEST) -run '^$$' -bench . ./scenarios

generate: ## generate what is generated: deep copies, the CustomResourceDefinition, reference pages
	$(GO) generate ./clusters/v1alpha1 && $(GO) generate ./... # pages show what the first makes

golden: ## rewrite the golden files; read the difference before you commit it
	$(TEST) ./cmd/quorate ./clusters/objects ./clusters/schema ./gitsource ./gitsource/manifests ./gitsource/signature ./reconcile/decide ./reconcile/simulate ./reconcile/report ./reconcile/report/findings ./reconcile/report/markdown -rewrite

demo: build ## show it: a cluster of three from a git push, on a sandbox, or on CONTEXT=name of your kubeconfig
	testdata/demo/run.sh up '$(CONTEXT)' '$(if $(filter-out file,$(origin IMAGE)),$(IMAGE))'

clean-demo: build ## remove what the demo has made
	testdata/demo/run.sh down $(CONTEXT)

image: build ## write an image of quorate, bin/quorate.tar, that docker, podman, ctr and skopeo can read
	$(BIN)/sandbox image $(IMAGE)=$(BIN)/quorate $(BIN)/quorate.tar

release: ## make a release of the tag VERSION in bin/release: programs, an image, a chart, checksums; see docs/how-to/release.md
	$(GO) -C .ci/release run -trimpath $(TAGS) . -root $(CURDIR) -version '$(VERSION)' -out $(BIN)/release/$(VERSION) $(if $(REPOSITORY),-repository '$(REPOSITORY)')

clean: ## remove what was built here; the cache of the sandbox stays
	rm -rf $(BIN)
