# `make` alone says what there is. `run`, `test` and `check` set up what they need.

PYTHON ?= python3
UV ?= uv
LISTEN ?= 127.0.0.1:50051
DATA_DIR ?= .muniment
ARGS ?=

BIN := .venv/bin
PIP_INSTALL := -m pip --disable-pip-version-check --quiet install

.DEFAULT_GOAL := help
.PHONY: help run test check format bench eval schema proto proto-check proto-baseline lock clean

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

run: .venv/.stamp ## Run a server with a database of its own: LISTEN=host:port DATA_DIR=folder
	$(BIN)/muniment serve --dev --listen $(LISTEN) --data-dir $(DATA_DIR)

test: .venv/.stamp ## Run the tests: ARGS="-k name"
	$(BIN)/python -m pytest -q $(ARGS)

check: .venv/.stamp .venv-gen/.stamp ## Check format, style, types, imports and the contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	proto/tools/contract.sh check

format: .venv/.stamp ## Format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.stamp ## Measure the server: ARGS="--help"
	$(BIN)/python -m tests.bench $(ARGS)

eval: .venv/.stamp ## Measure how well search finds, beside FTS5 and ILIKE: ARGS="--svg eval.svg"
	$(BIN)/python -m tests.eval $(ARGS)

schema: .venv/.stamp ## Write store/schema.sql anew from the migrations
	$(BIN)/python -m tests.support.schema

proto: .venv-gen/.stamp ## Generate everything that comes from proto/
	proto/tools/contract.sh generate

proto-check: .venv-gen/.stamp ## Check the contract: format, lint, compatibility, and that generated files are fresh
	proto/tools/contract.sh check

proto-baseline: .venv-gen/.stamp ## For a release: make this contract the one that later ones stay compatible with
	proto/tools/contract.sh baseline

lock: ## Resolve dependencies anew (needs uv): ARGS="--upgrade"
	$(UV) pip compile pyproject.toml --extra dev --extra semantic --no-emit-package muniment $(LOCK) -o service/requirements.lock $(ARGS)
	$(UV) pip compile proto/requirements.in $(LOCK) -o proto/requirements.lock $(ARGS)

# Hashes, and no address of any registry.
LOCK := --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header

clean: ## Remove environments and caches; DATA_DIR stays
	rm -rf .venv .venv-gen .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find service clients proto tests -name __pycache__ -type d -exec rm -rf {} +

# The editable installs fetch nothing: what they need, and what they build with, is in the lock.
.venv/.stamp: service/requirements.lock pyproject.toml clients/python/pyproject.toml
	$(call environment,.venv,service/requirements.lock)
	$(BIN)/python $(PIP_INSTALL) --no-index --no-deps --no-build-isolation -e clients/python -e .
	@touch $@

.venv-gen/.stamp: proto/requirements.lock
	$(call environment,.venv-gen,proto/requirements.lock)
	@touch $@

# An environment in the folder $(1) with exactly what the lock $(2) pins.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo >&2 "Muniment needs Python 3.11 or newer as $(PYTHON). Another one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    || { echo >&2 "$(PYTHON) has no venv module. On Debian: apt-get install python3-venv"; exit 1; }
	@test -x $(1)/bin/pip || $(PYTHON) -m venv $(1)
	$(1)/bin/python $(PIP_INSTALL) --require-hashes --only-binary :all: -r $(2)
endef
