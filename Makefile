# Needs Go 1.26 or later, make and git. "make help" lists the targets.

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
SLURM_CHANGES_SEED ?= 1
SYSTEMD_SUITES ?= bookworm trixie
GO_VERSIONS ?= 1.27.0
KERNELS   ?= bullseye/amd64 bookworm/amd64 trixie/amd64 trixie/arm64
PACKAGE_ARCHS ?= amd64 arm64
PACKAGE_REVISION ?= 1
PACKAGE_SUITES ?= bookworm trixie
PACKAGES   = $(DIST)/packages
RELEASE    = $(shell sed -n 's/^const Version = "\(.*\)"$$/\1/p' internal/release/release.go)
# The commit that is built and its date, for -V and the name of the archive. A second build of the same commit
# gives the same programs. Both are empty if this directory is not a clone, or if git refuses to read it for
# another user.
COMMIT    ?= $(shell [ -e .git ] && git describe --always --match= --abbrev=12 --dirty 2>/dev/null)
DATE      ?= $(shell [ -e .git ] && git log -1 --format=%cs 2>/dev/null)
VERSION   ?= $(RELEASE)$(if $(COMMIT),-$(COMMIT))

# Without cgo the binaries are static and run on any Linux. Go's own VCS stamp is off, because it would fail the
# build if git refuses to read the directory.
export CGO_ENABLED = 0
# Without paths in the programs, a build does not depend on the directory, and build, test and lint compile each
# package only once.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
# FIPS=1 builds programs that run in FIPS 140-3 mode, with the certified release of Go's cryptographic module. FIPS=v1.26.0
# or the like selects another release.
FIPS =
ifneq ($(FIPS),)
export GOFIPS140 := $(if $(filter 1,$(FIPS)),certified,$(FIPS))
endif
BUILD = $(GO) build -buildvcs=false -ldflags '$(LDFLAGS) -X schedrestd/internal/release.commit=$(COMMIT) -X schedrestd/internal/release.date=$(DATE)'

# Packages whose tests compare golden files or generated pages.
GOLDEN = $(sort $(dir $(shell grep -rlE 'flag\.Bool."update"' --include='*_test.go' . 2>/dev/null)))

.DEFAULT_GOAL = build
include deploy/install.mk
.PHONY: help build web screenshots demo test test-user test-go race fuzz golden lint openapi integration integration-slurm integration-changes integration-systemd integration-kernels packages packages-check integration-packages chaos bench bench-slurm docs dist dist-check release module clean

# Fails with one line about Go, and one with the commands that install it, if Go is missing or too old for go.mod.
# The commands need no root. GO_RELEASE is the release that they install.
GO_RELEASE = 1.26.8
GO_ARCH    = $(subst aarch64,arm64,$(subst x86_64,amd64,$(shell uname -m)))
NEED_GO    = @problem=$$($(GO) list -m 2>&1 >/dev/null) || { printf '%s\n' \
	"error: Go $(basename $(GO_RELEASE)) or later is needed: $$(printf '%s\n' "$$problem" | tail -n 1)" \
	'hint: mkdir -p ~/.local && curl -fsSL https://go.dev/dl/go$(GO_RELEASE).linux-$(GO_ARCH).tar.gz | tar -xz -C ~/.local && export PATH=~/.local/go/bin:$$PATH' >&2; exit 1; }

.PHONY: need-go
need-go:
	$(NEED_GO)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: need-go ## build static binaries into bin/; FIPS=1 for FIPS 140-3 mode (docs/FIPS.md)
	@mkdir -p bin 2>/dev/null && [ -w bin ] || { printf '%s\n' 'error: $(CURDIR)/bin can'\''t be written' 'hint: git clone $(CURDIR) ~/schedrestd' >&2; exit 1; }
	@[ -e bin/schedctl ] || echo 'building $(words $(PROGRAMS)) programs into bin/: the first time about two minutes on two processors, after a download of 140 MB'
	@GO='$(GO)' tools/progress $(BUILD) -v -o bin/ $(addprefix ./cmd/,$(PROGRAMS))
	@chmod 0711 $(addprefix bin/,$(filter schedrestd-%,$(UNREADABLE))) # otherwise the parent copies them to memory: privsep/spawn/program.go

# Programs that exist are not built again, because root, who runs "make install", may not have Go.
bin/%:
	$(NEED_GO)
	$(BUILD) -o $@ ./cmd/$*

demo: build ## start a cluster of one machine with the gateway at LISTEN (127.0.0.1:6820), show a job, and run until Ctrl-C
	bin/schedctl demo --listen $(LISTEN)

# Tests mostly wait, for processes and for limits, so more of them run at once than there are processors. The packages
# whose tests take longest come first.
CONCURRENT = $(shell expr $$(nproc) + 2)
LONGEST = $(addprefix ./,integration/jobs integration/privsep integration/chaos integration/auth integration/status integration/gateway handlers integration/attack integration/install integration/proxy)

# With AGAIN=3, if at most three tests fail, each of them runs once more, alone, and the run may still pass.
AGAIN =

# Without the debugger's tables and the symbols (-s) the test programs are linked in half the time. "make lint" runs vet.
TESTFLAGS = -ldflags=-s -vet=off -timeout 20m -p $(CONCURRENT) -parallel $(CONCURRENT)

TEST = INTEGRATION_BIN=$(CURDIR)/bin $(GO) run ./tools/lint/skipped $(AGAIN:%=-again %) $(TESTFLAGS) $(1) -- -ldflags=-s -vet=off -tags failpoint -run Failpoint ./bundled/ctld

test: build ## all tests that need no other software; lists the skipped tests and the reasons at the end
	$(call TEST,$(LONGEST) $$($(GO) list ./...))

# The results of tests can depend on the user only if the tests write files, use sockets with paths, start processes,
# or ask for the user. Those of the page at /status start a gateway, too, but only as something to look at, and
# tools/lint/openapi is another module.
OF_USER = $(filter-out ./integration/status ./tools/lint/openapi,$(sort $(patsubst %/,%,$(dir $(shell grep -rlE --include='*_test.go' --exclude-dir=node_modules \
	'TempDir|MkdirTemp|sockettest|harness\.Main|Getuid|Geteuid|"(syscall|os/exec|os/user|golang\.org/x/sys/unix)"' .)))))

test-user: build ## of these tests, only those in packages that depend on the user who runs them
	$(call TEST,$(filter $(OF_USER),$(LONGEST)) $(OF_USER))

test-go: need-go ## build, vet and test with the Go releases GO_VERSIONS (1.27.0), which Go downloads
	@set -e; for release in $(GO_VERSIONS); do \
		echo "== Go $$release"; export GOTOOLCHAIN=go$$release; $(MAKE) -s build; $(GO) vet ./...; $(MAKE) -s test AGAIN=$(AGAIN); \
	done
	@$(MAKE) -s build # with the Go of all other commands

race: need-go ## run the tests under the race detector (needs a C compiler)
	@command -v $${CC:-cc} >/dev/null || { echo 'error: the race detector needs a C compiler' >&2; echo 'hint: apt-get install gcc libc6-dev' >&2; exit 1; }
	CGO_ENABLED=1 $(GO) test -race -timeout 60m $$($(GO) list ./... | grep -vE '/bench$$|/integration/') # these use programs built without the detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m -tags nosandbox ./integration/privsep # the test binary serves as all programs; the sandbox does not work with cgo

fuzz: need-go ## each fuzz target for FUZZTIME (10s), those of package ipc for IPCFUZZTIME (60s)
	@set -e; for package in $$($(GO) list ./...); do \
		time=$(FUZZTIME); case $$package in */ipc) time=$(IPCFUZZTIME);; esac; \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $$time $$package; \
		done; \
	done

golden: need-go ## write golden files and generated pages; read the diff before you commit it
	@set -e; for package in $(GOLDEN); do $(GO) test -count=1 $$package -update; done
	@git --no-pager diff --stat

docs: golden ## write the generated pages under docs/

web: ## build the page at /status from web/src into web/dist (needs Node.js and npm); commit the result
	cd web && npm ci --no-audit --no-fund --ignore-scripts && npm run --silent check && npm run --silent build

screenshots: build ## make README's pictures of the demo (needs Chromium or its headless shell)
	STATUS_SCREENSHOTS=$(CURDIR)/docs $(GO) test -count=1 -run '^TestScreenshots$$' ./integration/status

lint: need-go ## check formatting, vet, staticcheck, known vulnerabilities, architecture, English
	@echo gofmt; files=$$(gofmt -l .); test -z "$$files" || { echo "error: not formatted:"; echo "$$files"; echo 'hint: gofmt -w .'; exit 1; } >&2
	$(GO) vet ./... && $(GO) vet -tags failpoint,nosandbox ./...
	$(GO) tool -modfile=tools/lint/tools.mod staticcheck ./...
	@GO='$(GO)' tools/lint/vulnerable
	$(GO) test -count=1 ./tools/lint/project

openapi: build ## check the OpenAPI documents with linters and generators (needs Node.js and npm)
	tools/lint/openapi/check

integration: build ## test the real binaries as a user would use them
	$(GO) test -count=1 -v ./integration/...

integration-slurm: build ## test with a real Slurm of SLURM_RELEASES (24.11), installed from Debian's packages; needs root
	@set -e; for release in $(SLURM_RELEASES); do \
		echo "== Slurm $$release"; SLURM_CHANGES_SEED=$(SLURM_CHANGES_SEED) SLURM_RELEASE=$$release $(GO) run ./tools/lint/skipped $(AGAIN:%=-again %) -count=1 -timeout 60m ./integration/slurm/...; \
	done

integration-changes: build ## compare the effects of all changes with those of slurmrestd, for SLURM_RELEASES (24.11); takes hours; SLURM_CHANGES=0.1 runs a tenth
	@set -e; for release in $(SLURM_RELEASES); do \
		echo "== Slurm $$release"; SLURM_CHANGES=$${SLURM_CHANGES:-all} SLURM_ROUNDS=$${SLURM_ROUNDS:-200} SLURM_RELEASE=$$release $(GO) test -count=1 -v -timeout 0 -run '^(TestChangesByForm|TestCompany)$$' ./integration/slurm; \
	done

integration-systemd: need-go ## test the units with systemd of SYSTEMD_SUITES (bookworm trixie), in machines made of Debian's packages; needs root
	@set -e; for suite in $(SYSTEMD_SUITES); do \
		echo "== Debian $$suite"; SYSTEMD_SUITE=$$suite $(GO) test -count=1 -v -timeout 30m ./integration/systemd; \
	done

integration-kernels: need-go ## test the sandbox on Debian's KERNELS (5.10 and later, two architectures) in emulated machines; takes an hour
	@set -e; for kernel in $(KERNELS); do \
		echo "== Debian $$kernel"; KERNELS_REQUIRED=1 KERNEL=$$kernel $(GO) test -count=1 -v -timeout 150m ./integration/kernels; \
	done

chaos: build ## apply load while workers, keeper and controller are killed, for CHAOS (10m; "make test" does so for 10 s)
	CHAOS=$(CHAOS) $(GO) test -count=1 -v -timeout 0 -run '^TestChaos$$' ./integration/chaos

bench: build ## measure speed in paired rounds and print tables; each benchmark takes BENCHTIME (20s, or a number of rounds: 6x), together less than 10 minutes
	$(GO) test -count=1 -timeout 20m -run '^$$' -bench . -benchtime $(BENCHTIME) -skip '^Benchmark(Slurm|Service)' ./bench/...

bench-slurm: build ## compare with slurmrestd and a real Slurm (LAB_ENV=/PATH of its lab.env); takes minutes
	@test -n "$(LAB_ENV)" || echo 'hint: without LAB_ENV=/PATH of a running lab'\''s lab.env all of these are skipped' >&2
	LAB_ENV="$(LAB_ENV)" $(GO) test -count=1 -v -timeout 30m -run '^$$' -bench '^BenchmarkSlurm' -benchtime $(SLURM_ROUNDS) ./bench/...

dist: build ## write an archive for this machine's architecture and its SBOM into DIST (dist); it contains its own "make install"
	@rm -rf $(DIST) && mkdir -p $(DIST)/schedrestd-$(VERSION)/bin
	cp $(addprefix bin/,$(PROGRAMS)) $(DIST)/schedrestd-$(VERSION)/bin
	cp -r README.md CHANGELOG.md SECURITY.md LICENSE docs deploy $(DIST)/schedrestd-$(VERSION)
	rm -r $(DIST)/schedrestd-$(VERSION)/docs/design
	mv $(DIST)/schedrestd-$(VERSION)/deploy/install.mk $(DIST)/schedrestd-$(VERSION)/Makefile
	tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner --mtime='1970-01-01 00:00Z' \
		-cf - schedrestd-$(VERSION) | gzip -n$(COMPRESSION) >$(DIST)/schedrestd-$(VERSION)-linux-$(GOARCH).tar.gz
	@rm -r $(DIST)/schedrestd-$(VERSION)
	GOARCH= $(GO) run ./tools/packaging/sbom schedrestd $(VERSION) $(addprefix bin/,$(PROGRAMS)) >$(DIST)/schedrestd-$(VERSION)-linux-$(GOARCH).cdx.json
	cd $(DIST) && sha256sum *.tar.gz *.cdx.json | tee SHA256SUMS

dist-check: need-go ## check that two builds of the archive are the same, in different directories and without a build cache; takes minutes
	PACKAGES_REQUIRED=1 $(GO) test -count=1 -v -timeout 60m -run '^TestDist$$' ./integration/packages

release: need-go ## check that everything agrees about the release, then write its packages and archive into DIST (dist)
	@git diff --quiet HEAD || { echo 'error: the working tree has changes that are not committed' >&2; exit 1; }
	RELEASING=1 $(GO) test -count=1 -run '^(TestRelease|TestSpecification)$$' ./tools/lint/project
	$(MAKE) -s lint
	$(MAKE) -s dist packages VERSION=$(RELEASE)
	@echo 'next: git tag -s v$(RELEASE) && git push origin v$(RELEASE)'

packages: build ## write .deb and .rpm for PACKAGE_ARCHS (amd64 arm64) into DIST (dist)/packages, with SBOMs and checksums
	@rm -rf $(PACKAGES) && mkdir -p $(PACKAGES)
	@set -e; for arch in $(PACKAGE_ARCHS); do $(MAKE) -s package-programs GOARCH=$$arch; done
	GO='$(GO)' PACKAGE_VERSION='$(RELEASE)' PACKAGE_REVISION='$(PACKAGE_REVISION)' tools/packaging/build $(PACKAGES) $(PACKAGE_ARCHS)

# Debian's policy requires stripped programs. Stack traces of a crash still have the names of functions.
.PHONY: package-programs
package-programs: LDFLAGS = -s -w
package-programs:
	GOARCH=$(GOARCH) $(BUILD) -o $(PACKAGES)/work/$(GOARCH)/bin/ $(addprefix ./cmd/,$(PROGRAMS))

packages-check: need-go ## check that two builds of the packages are the same and that lintian, rpm and AppArmor's parser find no errors
	@for program in lintian rpm apparmor_parser; do command -v $$program >/dev/null || { echo "error: there is no $$program" >&2; echo 'hint: apt-get install lintian rpm apparmor' >&2; exit 1; }; done
	PACKAGES_REQUIRED=1 $(GO) test -count=1 -v -timeout 20m ./integration/packages/...

integration-packages: need-go ## install, upgrade under load and purge the packages in machines of PACKAGE_SUITES (bookworm trixie) with systemd and Slurm; needs root
	@set -e; for suite in $(PACKAGE_SUITES); do \
		echo "== Debian $$suite"; PACKAGE_SUITE=$$suite $(GO) test -count=1 -v -timeout 15m ./integration/packages; \
	done

module: need-go ## give the module the address ADDRESS, under which it is published (github.com/OWNER/schedrestd)
	@test -n "$(ADDRESS)" || { echo 'hint: make module ADDRESS=github.com/OWNER/schedrestd' >&2; exit 1; }
	grep -rlZ --include='*.go' --exclude-dir=node_modules '"schedrestd/' . | xargs -0 sed -Ei 's#^(\s*(import )?([[:alnum:]_.]+ )?|const [a-z]+ = )"schedrestd/#\1"$(ADDRESS)/#'
	sed -i 's#^module schedrestd#module $(ADDRESS)#' go.mod tools/*/*.mod tools/*/*/go.mod
	sed -i 's#-X schedrestd/#-X $(ADDRESS)/#g' Makefile
	gofmt -w $$(gofmt -l .)
	$(GO) test -count=1 ./tools/lint/project -update
	$(GO) vet ./...

clean: ## remove what was built
	rm -rf bin dist
