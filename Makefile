# Needs Go 1.26, make and git. "make help" lists the targets.

GO        ?= go
GOARCH    ?= $(shell $(GO) env GOARCH)
FUZZTIME  ?= 10s
IPCFUZZTIME ?= 60s
CHAOS     ?= 10m
LISTEN     = 127.0.0.1:6820
BENCHTIME ?= 20s
SLURM_ROUNDS ?= 20x
DIST       = dist
COMPRESSION ?= 9
SLURM_RELEASES ?= 24.11
SYSTEMD_SUITES ?= bookworm trixie
KERNELS   ?= bullseye/amd64 bookworm/amd64 trixie/amd64 trixie/arm64
RELEASE    = $(shell sed -n 's/^const Version = "\(.*\)"$$/\1/p' release/release.go)
# What is built, for -V and the name of the archive. The date is the commit's, so that building it again gives the
# same programs. Both are empty where this is no clone of ours, or git refuses to read it for another user.
COMMIT    ?= $(shell [ -e .git ] && git describe --always --match= --abbrev=12 --dirty 2>/dev/null)
DATE      ?= $(shell [ -e .git ] && git log -1 --format=%cs 2>/dev/null)
VERSION   ?= $(RELEASE)$(if $(COMMIT),-$(COMMIT))
PROGRAMS   = schedrestd schedrestd-config schedrestd-worker schedrestd-keeper schedrestd-resolver schedrestd-auditor schedrestd-exporter schedrestd-dispatcher schedctl schedctld scheddbd

# No cgo: the binaries are static and run on any Linux. Go's own VCS stamp would fail the
# build where git refuses to answer.
export CGO_ENABLED = 0
BUILD = $(GO) build -trimpath -buildvcs=false -ldflags '-X schedrestd/release.commit=$(COMMIT) -X schedrestd/release.date=$(DATE)'

# Packages whose tests keep golden files or generated pages.
GOLDEN = $(sort $(dir $(shell grep -rlE 'flag\.Bool."update"' --include='*_test.go' . 2>/dev/null)))

.DEFAULT_GOAL = build
include deploy/install.mk
.PHONY: help build demo test race fuzz golden lint openapi integration integration-slurm integration-systemd integration-kernels chaos bench bench-slurm docs dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## static binaries into bin/
	$(BUILD) -o bin/ $(addprefix ./cmd/,$(PROGRAMS))
	@chmod 0711 bin/schedrestd-config bin/schedrestd-worker bin/schedrestd-keeper bin/schedrestd-resolver bin/schedrestd-auditor bin/schedrestd-exporter bin/schedrestd-dispatcher # who can't read them needs no copy of them: privsep/spawn/program.go

# For "make install" by root, who may have no Go: what is built is not built again.
bin/%:
	$(BUILD) -o $@ ./cmd/$*

demo: build ## a cluster of one machine with the gateway before it, at LISTEN (127.0.0.1:6820), until Ctrl-C
	bin/schedctl demo --listen $(LISTEN)

# The longest packages come first, so that the others run beside them.
LONGEST = $(addprefix ./,privsep integration/attack integration/chaos integration/jobs integration/gateway integration/auth)

test: build ## everything that needs no foreign software; the end of it lists what was skipped, and why
	INTEGRATION_BIN=$(CURDIR)/bin $(GO) run ./lint/skipped -timeout 20m $(LONGEST) $$($(GO) list ./...) -- -tags failpoint ./ctld ./ctld/step

race: ## the tests under the race detector (needs a C compiler)
	@command -v $${CC:-cc} >/dev/null || { echo 'error: the race detector needs a C compiler' >&2; echo 'hint: apt-get install gcc libc6-dev' >&2; exit 1; }
	CGO_ENABLED=1 $(GO) test -race $$($(GO) list ./... | grep -vE '/(privsep|bench)$$|/integration/') # the last two drive programs built without it
	CGO_ENABLED=1 $(GO) test -race -timeout 20m -tags nosandbox ./privsep # its programs are this binary, and the sandbox can't be closed with cgo

fuzz: ## each fuzz target for FUZZTIME (10s), the processes' own language for IPCFUZZTIME (60s)
	@set -e; for package in $$($(GO) list ./...); do \
		time=$(FUZZTIME); case $$package in */ipc) time=$(IPCFUZZTIME);; esac; \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $$time $$package; \
		done; \
	done

golden: ## write golden files and generated pages; read the diff before you commit it
	@set -e; for package in $(GOLDEN); do $(GO) test -count=1 $$package -update; done
	@git --no-pager diff --stat

docs: golden ## write the generated pages under docs/

lint: ## formatting, vet, staticcheck, architecture, English
	@echo gofmt; files=$$(gofmt -l .); test -z "$$files" || { echo "error: not formatted:"; echo "$$files"; echo 'hint: gofmt -w .'; exit 1; } >&2
	$(GO) vet ./... && $(GO) vet -tags failpoint,nosandbox ./...
	$(GO) tool -modfile=lint/tools.mod staticcheck ./...
	$(GO) run ./lint/prose
	$(GO) test -count=1 .

openapi: build ## linters and generators of others on the OpenAPI documents (needs Node.js and npm)
	lint/openapi/check

integration: build ## the real binaries, driven as a user would
	$(GO) test -count=1 -v ./integration/...

integration-slurm: build ## with real Slurm of SLURM_RELEASES (24.11), installed from Debian's packages; needs root
	@set -e; for release in $(SLURM_RELEASES); do \
		echo "== Slurm $$release"; SLURM_RELEASE=$$release $(GO) test -count=1 -v -timeout 12m ./integration/slurm/...; \
	done

integration-systemd: ## the units under systemd of SYSTEMD_SUITES (bookworm trixie), in machines of Debian's packages; needs root
	@set -e; for suite in $(SYSTEMD_SUITES); do \
		echo "== Debian $$suite"; SYSTEMD_SUITE=$$suite $(GO) test -count=1 -v -timeout 15m ./integration/systemd; \
	done

integration-kernels: ## the sandbox on Debian's KERNELS, from 5.10 on and of two architectures, in machines that qemu emulates: an hour
	@set -e; for kernel in $(KERNELS); do \
		echo "== Debian $$kernel"; KERNEL=$$kernel $(GO) test -count=1 -v -timeout 150m ./integration/kernels; \
	done

chaos: build ## load while workers, keeper and controller are killed, for CHAOS (10m; 30 s of it are in "make test")
	CHAOS=$(CHAOS) $(GO) test -count=1 -v -timeout 0 -run '^TestChaos$$' ./integration/chaos

bench: build ## speed in paired rounds, as tables; each benchmark takes BENCHTIME (20s, or a number of rounds: 6x), all of it under 10 minutes
	$(GO) test -count=1 -timeout 20m -run '^$$' -bench . -benchtime $(BENCHTIME) -skip '^BenchmarkSlurm' ./bench/...

bench-slurm: build ## beside slurmrestd with a real Slurm (LAB_ENV=/PATH of its lab.env; takes minutes)
	@test -n "$(LAB_ENV)" || echo 'hint: without LAB_ENV=/PATH of a running lab'\''s lab.env all of these are skipped' >&2
	LAB_ENV="$(LAB_ENV)" $(GO) test -count=1 -v -timeout 30m -run '^$$' -bench '^BenchmarkSlurm' -benchtime $(SLURM_ROUNDS) ./bench/...

dist: build ## an archive for this machine's architecture into DIST (dist); it has a "make install" of its own
	@rm -rf $(DIST) && mkdir -p $(DIST)/schedrestd-$(VERSION)/bin
	cp $(addprefix bin/,$(PROGRAMS)) $(DIST)/schedrestd-$(VERSION)/bin
	cp -r README.md CHANGELOG.md SECURITY.md LICENSE THIRD-PARTY.txt docs deploy $(DIST)/schedrestd-$(VERSION)
	mv $(DIST)/schedrestd-$(VERSION)/deploy/install.mk $(DIST)/schedrestd-$(VERSION)/Makefile
	tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner --mtime='1970-01-01 00:00Z' \
		-cf - schedrestd-$(VERSION) | gzip -n$(COMPRESSION) >$(DIST)/schedrestd-$(VERSION)-linux-$(GOARCH).tar.gz
	@rm -r $(DIST)/schedrestd-$(VERSION)
	cd $(DIST) && sha256sum *.tar.gz | tee SHA256SUMS

clean: ## remove what was built
	rm -rf bin dist
