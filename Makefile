# The commands of the README, and the pieces they are made of.
BINARY := target/release/leveret

# The program without symbols, as it is installed and packed; the one with symbols stays where cargo puts it.
SHIPPED := target/shipped/leveret
TOOLS := $(shell cat packaging/tools)
PREFIX ?= /usr/local

.PHONY: help run build install package deb image image-root image-archive test bench ui

# The pages of the management listener, built by npm and embedded by cargo. Without npm the binary says on / that it has none.
UI_SOURCES := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/tsconfig.json ui/pack.mjs
ifneq ($(shell command -v npm),)
UI := ui/dist/index.html
endif

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	cd ui && npm ci --silent --no-progress && touch node_modules/.package-lock.json

ui/dist/index.html: ui/node_modules/.package-lock.json $(UI_SOURCES)
	cd ui && npm run --silent build

help: ## list these commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

run: build ## start a broker on port 5672, its HTTP API on 15672, with its data in ./var (or LEVERET_DATA_DIR)
	@exec $(BINARY) server

build: $(UI) ## build target/release/leveret and nothing else
	cargo build --release --locked --bin leveret

$(SHIPPED): build
	mkdir -p $(@D) && strip -o $@ $(BINARY)

install: $(SHIPPED) ## install leveret and RabbitMQ's tools as links to it into PREFIX (/usr/local), below DESTDIR
	install -D -m 755 $(SHIPPED) $(DESTDIR)$(PREFIX)/bin/leveret
	for tool in $(TOOLS); do ln -sf leveret $(DESTDIR)$(PREFIX)/bin/$$tool; done

# What is in a package besides the program, as it lies on the machine that it is installed on. RabbitMQ's tools stand aside: a machine may
# have RabbitMQ's own as well.
PACKAGE := target/package
COMPLETIONS := usr/share/bash-completion/completions

package: $(SHIPPED)
	rm -rf $(PACKAGE)
	install -D -m 755 $(SHIPPED) $(PACKAGE)/usr/bin/leveret
	install -d $(PACKAGE)/usr/lib/leveret/bin $(PACKAGE)/$(COMPLETIONS)
	for tool in $(TOOLS); do ln -s ../../../bin/leveret $(PACKAGE)/usr/lib/leveret/bin/$$tool; done
	$(BINARY) ctl completions bash > $(PACKAGE)/$(COMPLETIONS)/leveret

deb: package ## build the Debian package into target/debian, with cargo-deb (installed into target/tools if there is none)
	command -v cargo-deb || test -x target/tools/bin/cargo-deb || cargo install cargo-deb --locked --root target/tools
	PATH="$$PATH:$(CURDIR)/target/tools/bin" cargo deb -p leveret-server --no-build --locked --strip

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

bench: build ## compare brokers that are running: make bench TARGETS="--target leveret=amqp://localhost:5672 --target rabbitmq=amqp://localhost:5673"
	$(BINARY) bench $(TARGETS)
