# Installs the programs in bin/, with manual pages and units. The Makefile includes this file. In
# the archive that "make dist" packs, this file is the Makefile.

# For building a package, DESTDIR is put before each of these paths. schedrestd looks for its other
# programs in its own directory.
PREFIX      ?= /usr/local
BINDIR      ?= $(PREFIX)/bin
SBINDIR     ?= $(PREFIX)/sbin
SYSCONFDIR  ?= /etc
DATADIR     ?= $(PREFIX)/share
MANDIR      ?= $(DATADIR)/man
DOCDIR      ?= $(DATADIR)/doc/schedrestd
BASHDIR     ?= $(DATADIR)/bash-completion/completions
ZSHDIR      ?= $(DATADIR)/zsh/site-functions
FISHDIR     ?= $(DATADIR)/fish/vendor_completions.d
UNITDIR     ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d

# The units are made for this version of systemd. The default is the version on this machine.
# Without systemd, the units are made for the newest version.
SYSTEMD_VERSION ?= $(shell systemctl --version 2>/dev/null | awk 'NR == 1 { print $$2 + 0 }')

# BIN is the directory of the programs to install. COMPLETER is a directory of programs that this
# machine can run. They write the completions.
BIN      ?= bin
COMPLETER ?= $(BIN)

# These lists name all programs, and determine what is built, installed and packed.
SERVERS  = schedrestd scheddbd
COMMANDS = schedctl
# These programs are executable but not readable. So other processes of the same user can't trace
# them, not even before their first instruction.
UNREADABLE = schedrestd-config schedrestd-worker schedrestd-keeper schedrestd-resolver schedrestd-auditor schedrestd-exporter schedrestd-dispatcher schedrestd-output schedrestd-credential schedctld
PROGRAMS = $(SERVERS) $(COMMANDS) $(UNREADABLE)

UNITS    = $(patsubst deploy/systemd/%.in,%,$(wildcard deploy/systemd/*.in))
PAGES    = $(notdir $(wildcard docs/man/*.[1-9]))
# docs/design is for reviewers and contributors, and is not installed.
DOCS     = README.md CHANGELOG.md SECURITY.md LICENSE deploy/THIRD-PARTY.txt $(filter-out docs/README.md,$(wildcard docs/*.md))
GENERATED = $(addprefix docs/generated/,ENDPOINTS.md RPC.md METRICS.md COMMANDS.md DIFFERENCES.md SPELLINGS.md)
EXAMPLES = $(wildcard deploy/examples/*)

# If root runs "make install", root owns the files, regardless of the umask and the group. Otherwise
# the user who runs it owns them.
PUT    = install $(if $(filter 0,$(shell id -u)),-o root -g root)
# Fills in the paths and the settings that the units share (service.conf: the gateways of all clusters). It omits DelegateSubgroup= for systemd
# before 254, which would warn about this line.
FILL   = sed -e '/^@HARDENING@$$/{' -e 'r deploy/systemd/hardening.conf' -e 'd' -e '}' \
	$(if $(filter 1,$(shell [ '$(or $(SYSTEMD_VERSION),254)' -lt 254 ] && echo 1)),-e '/^DelegateSubgroup=/d') \
	-e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@DOCDIR@|$(DOCDIR)|g'
COMPLETED   = schedrestd schedctl
COMPLETIONS = $(foreach name,$(COMPLETED),$(BASHDIR)/$(name) $(ZSHDIR)/_$(name) $(FISHDIR)/$(name).fish)

.PHONY: usage install uninstall

# In the archive, make without a target must not change the machine.
ifeq ($(.DEFAULT_GOAL),)
usage:
	@echo 'make install    DESTDIR= and PREFIX=$(PREFIX) say where to'; echo 'make uninstall'
endif

install: $(addprefix $(BIN)/,$(SERVERS) $(COMMANDS) $(UNREADABLE)) ## install the programs in bin/, with manual pages and units, to PREFIX (/usr/local) below DESTDIR
	$(PUT) -d $(addprefix $(DESTDIR),$(BINDIR) $(SBINDIR) $(DOCDIR)/examples $(DOCDIR)/generated $(UNITDIR) $(SYSUSERSDIR) $(TMPFILESDIR) \
		$(sort $(foreach page,$(PAGES),$(MANDIR)/man$(subst .,,$(suffix $(page))))) $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	$(PUT) -m 0755 $(addprefix $(BIN)/,$(SERVERS)) $(DESTDIR)$(SBINDIR)
	$(PUT) -m 0711 $(addprefix $(BIN)/,$(UNREADABLE)) $(DESTDIR)$(SBINDIR)
	$(PUT) -m 0755 $(addprefix $(BIN)/,$(COMMANDS)) $(DESTDIR)$(BINDIR)
	$(PUT) -m 0644 $(DOCS) $(DESTDIR)$(DOCDIR)
	$(PUT) -m 0644 $(GENERATED) $(DESTDIR)$(DOCDIR)/generated
	$(PUT) -m 0644 deploy/sysusers.d/schedrestd.conf $(DESTDIR)$(SYSUSERSDIR)
	$(PUT) -m 0644 deploy/tmpfiles.d/schedrestd.conf $(DESTDIR)$(TMPFILESDIR)
	@set -e; write() { to="$(DESTDIR)$$1"; shift; echo "$$to"; "$$@" >"$$to.new"; chmod 0644 "$$to.new"; mv -f "$$to.new" "$$to"; }; \
	fill() { sed -e '/^@SERVICE@$$/{' -e 'r deploy/systemd/service.conf' -e 'd' -e '}' "$$1" | $(FILL); }; \
	for unit in $(UNITS); do write $(UNITDIR)/$$unit fill deploy/systemd/$$unit.in; done; \
	for file in $(notdir $(EXAMPLES)); do write $(DOCDIR)/examples/$${file%.in} $(FILL) deploy/examples/$$file; done; \
	for page in $(PAGES); do write $(MANDIR)/man$${page##*.}/$$page cat docs/man/$$page; done; \
	$(COMPLETER)/schedrestd completion bash >/dev/null 2>&1 || { echo 'no completions: $(COMPLETER)/schedrestd, built for another machine, makes none here'; exit 0; }; \
	for name in $(COMPLETED); do \
		write $(BASHDIR)/$$name $(COMPLETER)/$$name completion bash; \
		write $(ZSHDIR)/_$$name $(COMPLETER)/$$name completion zsh; \
		write $(FISHDIR)/$$name.fish $(COMPLETER)/$$name completion fish; \
	done

uninstall: ## remove the files of "make install"; configuration and state stay
	rm -f $(addprefix $(DESTDIR)$(SBINDIR)/,$(SERVERS) $(UNREADABLE)) $(addprefix $(DESTDIR)$(BINDIR)/,$(COMMANDS))
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(UNITS)) $(addprefix $(DESTDIR),$(SYSUSERSDIR)/schedrestd.conf $(TMPFILESDIR)/schedrestd.conf $(COMPLETIONS))
	rm -f $(foreach page,$(PAGES),$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page))
	rm -rf $(DESTDIR)$(DOCDIR)
