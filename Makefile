# The two commands of the README, and the pieces they are made of.
BINARY := target/release/leveret

.PHONY: help run build test bench

help: ## list these commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

run: build ## start a broker on port 5672, its HTTP API on 15672, with its data in ./var (or LEVERET_DATA_DIR)
	@exec $(BINARY) server

build: ## build target/release/leveret and nothing else
	cargo build --release --locked --bin leveret

test: ## run every test: the gate of the workspace, then the real binary with foreign clients
	cargo xtask ci
	cargo build --release --locked --bin leveret
	tests/run $(BINARY)

bench: build ## compare brokers that are running: make bench TARGETS="--target leveret=amqp://localhost:5672 --target rabbitmq=amqp://localhost:5673"
	$(BINARY) bench $(TARGETS)
