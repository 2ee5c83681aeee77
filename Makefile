# The commands of the README, and the pieces they are made of.
BINARY := target/release/leveret

# The files below are looked for here, so cargo builds here, even where the environment names another folder.
export CARGO_TARGET_DIR := $(CURDIR)/target

# The program without symbols, as it is installed and packed; the one with symbols stays where cargo puts it.
SHIPPED := target/shipped/leveret
TOOLS := $(shell cat packaging/tools)
PREFIX ?= /usr/local

.PHONY: help run cluster program build install package deb image image-root image-archive test bench ui

# The pages of the management listener, built by npm and embedded by cargo. Without npm the binary says on / that it has none.
UI_SOURCES := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/tsconfig.json ui/pack.mjs
ifneq ($(shell command -v npm),)
UI := ui/dist/index.html
endif

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	cd ui && npm ci --loglevel error --engine-strict --no-audit --no-fund --no-progress && touch node_modules/.package-lock.json

# The tests install these packages once more, which is no reason to build the pages and the program again.
ui/dist/index.html: ui/package-lock.json $(UI_SOURCES) | ui/node_modules/.package-lock.json
	cd ui && npm run --silent build

help: ## list these commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

run: program ## start a broker on port 5672, its HTTP API on 15672, with its data in ./var (or LEVERET_DATA_DIR)
	@exec $(BINARY) server

cluster: program ## start three nodes on this machine as one cluster, with their data in ./var/cluster
	@exec $(BINARY) cluster

program: $(UI)
	$(if $(UI),,@echo 'there is no npm here: the program will have no web UI')
	cargo build --release --locked --bin leveret

$(SHIPPED): program
	mkdir -p $(@D) && strip -o $@ $(BINARY)

# What is installed besides the program, below a root and a prefix: manual pages, documentation, completions for three shells.
MANUALS := target/manuals
SYSCONFDIR ?= /etc

$(MANUALS): $(SHIPPED) packaging/man/generate
	packaging/man/generate $(SHIPPED) $@

define install-pages
	install -D -m 644 packaging/man/leveret.8 $(1)/share/man/man8/leveret.8
	install -D -m 644 -t $(1)/share/man/man1 $(MANUALS)/*.1
	install -D -m 644 -t $(1)/share/doc/leveret docs/*.md CHANGELOG.md
	install -d $(1)/share/bash-completion/completions $(1)/share/zsh/site-functions $(1)/share/fish/vendor_completions.d
	$(SHIPPED) ctl completions bash > $(1)/share/bash-completion/completions/leveret
	$(SHIPPED) ctl completions zsh > $(1)/share/zsh/site-functions/_leveret
	$(SHIPPED) ctl completions fish > $(1)/share/fish/vendor_completions.d/leveret.fish
endef

# Texts name things by the places that a package gives them.
PLACED := sed -i -e 's,/usr/\(bin\|share/doc\)/leveret,$(PREFIX)/\1/leveret,g' -e 's,/usr/lib/leveret/bin,$(PREFIX)/bin,g' \
	-e 's,/etc/\(default/\)\?leveret,$(SYSCONFDIR)/\1leveret,g'

# Settings that are there stay as they are.
keep = test -e $(3) || { install -D -m $(2) $(1) $(3) && $(PLACED) $(3)$(4); }

# Settings may hold passwords, so besides root only the service reads them. Whoever packs what lies below DESTDIR does this himself.
SYSUSERS = ! command -v systemd-sysusers >/dev/null || systemd-sysusers $(PREFIX)/lib/sysusers.d/leveret.conf
GIVE = $(if $(DESTDIR),, && { chgrp leveret $(1) || echo 'only root can read $(1): create the group leveret, then chgrp leveret $(1)' >&2; })

build: $(SHIPPED) $(MANUALS) ## build target/release/leveret, and what make install puts beside it

# With sudo only what is there is copied: root may have no cargo, and files that root builds here are in the way later.
install: $(if $(SUDO_USER),,build) ## install leveret, RabbitMQ's tools as links to it, the service and the manuals into PREFIX (/usr/local), below DESTDIR
	@test -d $(MANUALS) || { echo 'there is nothing to install yet: run make build first, without sudo' >&2; exit 1; }
	install -D -m 755 $(SHIPPED) $(DESTDIR)$(PREFIX)/bin/leveret
	for tool in $(TOOLS); do ln -sf leveret $(DESTDIR)$(PREFIX)/bin/$$tool; done
	$(call install-pages,$(DESTDIR)$(PREFIX))
	install -D -m 644 packaging/systemd/leveret.service $(DESTDIR)$(PREFIX)/lib/systemd/system/leveret.service
	install -D -m 644 packaging/leveret.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/leveret.conf
	$(PLACED) $(DESTDIR)$(PREFIX)/lib/systemd/system/leveret.service $(DESTDIR)$(PREFIX)/share/man/man[18]/leveret*
	$(if $(DESTDIR),,test "$$(id -u)" != 0 || { $(SYSUSERS); })
	$(call keep,packaging/leveret.conf,640,$(DESTDIR)$(SYSCONFDIR)/leveret/leveret.conf,$(call GIVE,$(SYSCONFDIR)/leveret/leveret.conf))
	$(call keep,packaging/leveret.default,640,$(DESTDIR)$(SYSCONFDIR)/default/leveret)

# What is in a package besides the program, as it lies on the machine that it is installed on. RabbitMQ's tools stand aside: a machine may
# have RabbitMQ's own as well.
PACKAGE := target/package

package: build
	rm -rf $(PACKAGE)
	install -D -m 755 $(SHIPPED) $(PACKAGE)/usr/bin/leveret
	install -d $(PACKAGE)/usr/lib/leveret/bin
	for tool in $(TOOLS); do ln -s ../../../bin/leveret $(PACKAGE)/usr/lib/leveret/bin/$$tool; done
	$(call install-pages,$(PACKAGE)/usr)

# What makes a Debian package. Built without optimization, except for what compresses, for it runs once.
CARGO_DEB := target/tools/bin/cargo-deb

ifeq ($(shell command -v cargo-deb),)
deb: $(CARGO_DEB)
endif

$(CARGO_DEB):
	@echo 'cargo-deb is not installed; it is built into target/tools, which takes a minute or a few'
	CARGO_TARGET_DIR=$(CURDIR)/target/tools/build CARGO_PROFILE_DEV_DEBUG=0 \
		cargo install cargo-deb --version 3.8.0 --locked --debug --root target/tools --no-track
	rm -r target/tools/build

deb: package ## build the Debian package into target/debian, with cargo-deb (built into target/tools if there is none)
	PATH="$$PATH:$(CURDIR)/target/tools/bin" cargo deb -p leveret-server --no-build --locked --strip --quiet

# A container engine that answers. Without one the image is put together here and written as an archive, which any engine loads.
ifneq ($(filter image,$(MAKECMDGOALS)),)
ENGINE := $(shell for engine in podman docker buildah; do if $$engine info >/dev/null 2>&1; then echo $$engine; break; fi; done)
endif
IMAGE := target/image

ifneq ($(ENGINE),)
image: ## build the container image leveret, a drop-in for rabbitmq:management (without an engine: an archive for docker load)
	$(ENGINE) build $(if $(filter docker,$(ENGINE)),,--format docker) --file packaging/Containerfile --tag leveret .
else
image: image-archive
endif

$(IMAGE)/base/etc/debian_version:
	mkdir -p $(IMAGE) && packaging/image/base $(IMAGE)/base

image-root: $(SHIPPED) $(IMAGE)/base/etc/debian_version
	rm -rf $(IMAGE)/root && cp -a $(IMAGE)/base $(IMAGE)/root
	packaging/image/layout $(SHIPPED) $(IMAGE)/root

image-archive: image-root
	packaging/image/archive $(IMAGE)/root $(IMAGE)/leveret.tar
	@echo "no container engine runs here: $(IMAGE)/leveret.tar is the image; docker load -i or podman load -i takes it"

ui: $(UI) ## build the web UI into ui/dist, from where the next cargo build takes it

test: $(UI) ## run every test: the gate of the workspace, then the real binary with foreign clients
	cargo xtask ci
	cargo build --release --locked --bin leveret
	tests/run $(BINARY)
	tests/run $(BINARY) --cluster --cycles 5
	tests/run $(BINARY) --cluster --quorum

bench: program ## compare brokers that are running: make bench TARGETS="--target leveret=amqp://localhost:5672 --target rabbitmq=amqp://localhost:5673"
	$(BINARY) bench $(TARGETS)
