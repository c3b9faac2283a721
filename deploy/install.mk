# Installs the programs in bin/, with manual pages and units. It is part of the Makefile, and it is
# the Makefile of the archive that "make dist" packs.

# DESTDIR is put before each of these paths, for building a package. schedrestd looks for its other
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

# Version of systemd for which the units are installed: this machine's, or the newest.
SYSTEMD_VERSION ?= $(shell systemctl --version 2>/dev/null | awk 'NR == 1 { print $$2 + 0 }')

# BIN has the programs to install. COMPLETER has programs that this machine can run, which write the
# completions.
BIN      ?= bin
COMPLETER ?= $(BIN)

# All programs. These lists determine what is built, installed and packed.
SERVERS  = schedrestd scheddbd
COMMANDS = schedctl
# Executable but not readable: other processes of the same user can't trace such a process, not even
# before its first instruction.
UNREADABLE = schedrestd-config schedrestd-worker schedrestd-keeper schedrestd-resolver schedrestd-auditor schedrestd-exporter schedrestd-dispatcher schedctld
PROGRAMS = $(SERVERS) $(COMMANDS) $(UNREADABLE)

UNITS    = $(patsubst deploy/systemd/%.in,%,$(wildcard deploy/systemd/*.in))
PAGES    = $(notdir $(wildcard docs/man/*.[1-9]))
DOCS     = README.md CHANGELOG.md SECURITY.md LICENSE THIRD-PARTY.txt $(filter-out docs/README.md,$(wildcard docs/*.md))
EXAMPLES = $(wildcard deploy/examples/*)

# If root installs, root owns the files whatever the umask and the group are. Other users own the
# files that they install.
PUT    = install $(if $(filter 0,$(shell id -u)),-o root -g root)
# Fills in the paths and the settings that all units share. systemd before 254 would warn about
# DelegateSubgroup=.
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
	$(PUT) -d $(addprefix $(DESTDIR),$(BINDIR) $(SBINDIR) $(DOCDIR)/examples $(UNITDIR) $(SYSUSERSDIR) $(TMPFILESDIR) \
		$(sort $(foreach page,$(PAGES),$(MANDIR)/man$(subst .,,$(suffix $(page))))) $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	$(PUT) -m 0755 $(addprefix $(BIN)/,$(SERVERS)) $(DESTDIR)$(SBINDIR)
	$(PUT) -m 0711 $(addprefix $(BIN)/,$(UNREADABLE)) $(DESTDIR)$(SBINDIR)
	$(PUT) -m 0755 $(addprefix $(BIN)/,$(COMMANDS)) $(DESTDIR)$(BINDIR)
	$(PUT) -m 0644 $(DOCS) $(DESTDIR)$(DOCDIR)
	$(PUT) -m 0644 deploy/sysusers.d/schedrestd.conf $(DESTDIR)$(SYSUSERSDIR)
	$(PUT) -m 0644 deploy/tmpfiles.d/schedrestd.conf $(DESTDIR)$(TMPFILESDIR)
	@set -e; write() { to="$(DESTDIR)$$1"; shift; echo "$$to"; "$$@" >"$$to.new"; chmod 0644 "$$to.new"; mv -f "$$to.new" "$$to"; }; \
	for unit in $(UNITS); do write $(UNITDIR)/$$unit $(FILL) deploy/systemd/$$unit.in; done; \
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
