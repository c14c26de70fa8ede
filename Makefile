# Every target sets up what it needs; the two that matter most are `demo` and `test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= .fairway
PORT   ?= 7878
SEEDS  ?= 20
WORKERS ?= 3
ORDER  ?= $(shell date +%s)
FIRST  ?=
STAMP  := $(VENV)/.installed
NPM    := ../tools/npm --loglevel error

# Compiled modules are kept: otherwise every hub and every child of a test compiles all of them again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test shifted pure-shifted check format planted sim peers e2e bench lock generate goldens ui ui-check pictures clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  \033[1m%-10s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Fairway needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) (once; about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## Set up everything and start a hub with a small fleet
	@$(BIN)/fairway up --demo --data $(DATA) --port $(PORT)

test: $(STAMP) ## Set up everything and run all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder $(ARGS)

shifted: ## Run the pure tests on another day and in another zone, in random order, on the newest Python (again: ORDER=)
	@$(MAKE) --no-print-directory VENV=.venv-newest PYTHON=$$(tools/newest-python $(PYTHON)) ORDER=$(ORDER) pure-shifted

pure-shifted: $(STAMP)
	@# Folders of its own: by this clock those of other runs are old enough to be removed.
	@root=$$(mktemp -d) && FAIRWAY_PURE=1 HYPOTHESIS_PROFILE=few FAIRWAY_ORDER=$(ORDER) TZ=Pacific/Chatham PYTEST_DEBUG_TEMPROOT=$$root \
	  tools/later 400 $(BIN)/python -m pytest -n 2 -p no:cacheprovider -m "not real and not long" $(ARGS); \
	  status=$$?; rm -rf $$root; exit $$status

check: $(STAMP) ## Format, lint, types, import rules, sizes, generated files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache && $(BIN)/lint-imports --no-cache --config .importlinter.stages
	@$(BIN)/python tools/tidy.py

format: $(STAMP) ## Format the code and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

planted: $(STAMP) ## Plant bugs in the core, one by one, and see that the tests notice each
	@$(BIN)/python -m tests.core.planted.run

sim: $(STAMP) ## Simulate a fleet with faults: one seed in full (SEED=7), or many fresh ones (SEEDS=200, again: FIRST=)
	@$(BIN)/python -m fairway.sim $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) $(if $(FIRST),--first $(FIRST)))

peers: $(STAMP) ## Build real peers, record what they decide, compare (docs/peers.md); ARGS="kueue" for one
	@$(BIN)/python -m tests.peers $(ARGS)

E2E    := .venv-e2e

$(E2E)/.installed: requirements/e2e.lock
	@test -x $(E2E)/bin/python || $(PYTHON) -m venv $(E2E)
	@$(E2E)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/e2e.lock
	@touch $@

e2e: $(STAMP) $(E2E)/.installed ## Run jax, torch and Flower as workloads of a hub (docs/peers.md; needs 6 GB)
	@$(BIN)/python -m tests.e2e $(ARGS)

bench: $(STAMP) ## Measure; results with their machine go to bench/results
	@$(BIN)/python -m bench $(ARGS)

goldens: $(STAMP) ## Rewrite what Fairway says to the outside, as tests/goldens keep it
	@$(BIN)/python -m tests.goldens.record

generate: $(STAMP) ## Rewrite what is derived from tables and types: CRDs, Helm chart, alerts, dashboard, references
	@$(BIN)/python -m fairway.api.crds deploy/crds
	@$(BIN)/python -m fairway.deploy.chart deploy/chart
	@$(BIN)/python -m fairway.deploy.monitoring deploy/monitoring
	@$(BIN)/python tools/api_reference.py
	@$(BIN)/python tools/held_back.py
	@$(BIN)/python tools/metrics_table.py

ui: $(STAMP) web/node_modules/.package-lock.json ## Build the page from web/ into the package (needs npm, or takes it from PyPI)
	@$(BIN)/python tools/page_types.py web/.openapi.json
	@cd web && $(NPM) run --silent types
	@cd web && $(NPM) run --silent check
	@cd web && $(NPM) run --silent test
	@cd web && $(NPM) run --silent build

ui-check: $(STAMP) ## Build the page, and see that what is committed is what its sources make
	@rm -rf build/page && mkdir -p build && cp -r fairway/page/built build/page && cp web/src/api/schema.d.ts build/page/
	@$(MAKE) --no-print-directory ui
	@cp web/src/api/schema.d.ts fairway/page/built/ && diff -rq build/page fairway/page/built; found=$$?; rm fairway/page/built/schema.d.ts; \
	  test $$found = 0 || { echo "The page that is committed is not that of its sources: commit what 'make ui' made."; exit 1; }

pictures: $(STAMP) ## Take the pictures of the page for the README and the guide
	@FAIRWAY_SCREENSHOTS=docs/guides/images $(BIN)/python -m pytest -q tests/page/test_pictures.py

web/node_modules/.package-lock.json: web/package-lock.json | $(STAMP)
	@cd web && $(NPM) ci --no-audit --no-fund

lock: $(STAMP) ## Pin all dependencies anew
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url pyproject.toml -o requirements/run.lock
	@$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --extra dev -c requirements/run.lock pyproject.toml -o requirements/dev.lock
	@$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --override requirements/e2e.override requirements/e2e.in -o requirements/e2e.lock

clean: ## Remove the environment and everything made
	@rm -rf $(VENV) .venv-* $(DATA) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build *.egg-info web/node_modules
