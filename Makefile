# `make demo` and `make test` need nothing but make and Python 3.11 or later: each sets up .venv by itself, once.
# Another interpreter: make test PYTHON=/path/to/python3.12

VENV := .venv
BIN := $(VENV)/bin
MODEL := .venv-model
REAL := .venv-real
LOWEST := .venv-lowest
LOCK := .venv-lock
# The name holds the checksum of what is installed, so changed requirements are installed and nothing is done otherwise.
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml metatree/version.py requirements/test.txt | cksum | cut -d' ' -f1)

# One or two for each package that metatree uses; `unit/memory_tools` tries every parser.
LOWEST_TESTS := $(addprefix tests/, unit/memory_tools unit/blackboard/test_images.py unit/agents/cli/test_output.py \
	$(addprefix unit/routers/, embedded/test_embedded.py evidence/test_evidence.py index llm/test_parts.py) \
	integration/test_documents.py integration/agents/test_cli_serving.py::test_a_first_start_answers_and_a_worker_takes_over \
	integration/agents/test_mcp.py::test_every_tool_over_every_way)

PLANNERS := .venv-planners
PLANNERS_STAMP := $(PLANNERS)/.installed-$(shell cksum < requirements/planning.txt | cut -d' ' -f1)
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed-$(shell cksum < requirements/peers.txt | cut -d' ' -f1)

DURABLE := .venv-durable
DURABLE_STAMP := $(DURABLE)/.installed-$(shell cksum < requirements/durable.txt | cut -d' ' -f1)

SITE := .venv-site
SITE_STAMP := $(SITE)/.installed-$(shell cksum < requirements/site.txt | cut -d' ' -f1)

DIST := .venv-dist
DIST_STAMP := $(DIST)/.installed-$(shell cksum < requirements/dist.txt | cut -d' ' -f1)

FUZZ := .venv-fuzz
FUZZ_STAMP := $(FUZZ)/.installed-$(shell cksum < requirements/service.txt | cut -d' ' -f1)
FUZZ_ARGS := --schemathesis $(FUZZ)/bin/schemathesis

# Hundreds of tests start a process that imports the project, which would compile all of it each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dist sbom demo prepare test test-model test-real screenshots test-lowest lock check format docs site soak soak-gateway soak-service load-service fuzz-service audit bench bench-retrieval bench-answers bench-peers bench-planning bench-durable bench-service clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install the project with its test tools into it

$(STAMP):
	@.ci/setup "$(VENV)" "$(PYTHON)"
	@rm -f $(VENV)/.installed-* && touch $@

demo: $(STAMP) ## build the tree of a well-known package, ask it a question, list the files to edit for an issue
	@$(BIN)/python examples/demo.py

test: $(STAMP) ## run the tests, on all cores
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

prepare: $(STAMP) $(SITE_STAMP) # get what `test-model`, `test-real` and `test-lowest` need, and nothing more
	@$(BIN)/python .ci/model "$(MODEL)"
	@$(BIN)/python .ci/real "$(REAL)"
	@.ci/lowest "$(LOWEST)" "$(BIN)/python"

test-model: $(STAMP) ## run the tests that need a real model: a small one, downloaded once, on loopback
	@$(BIN)/python .ci/model "$(MODEL)"
	@$(BIN)/python -m pytest tests/model -m model

test-real: $(STAMP) $(SITE_STAMP) ## run the tests with real programs, servers and files of others, three at a time; installs what is missing
	@$(BIN)/python .ci/real "$(REAL)"
	@$(BIN)/python -m pytest tests/real tests/integration/service -m real -n 3 --dist worksteal $(ARGS)

screenshots: $(STAMP) ## take pictures of the web page in a real Chromium, light, dark, wide and narrow, into build/screenshots
	@$(BIN)/python .ci/real "$(REAL)"
	@$(BIN)/python -m pytest tests/real/test_web_page.py -m real -n 2 -k "conversation or walk_is_watched or api_is_tried" $(ARGS)

test-lowest: $(STAMP) ## run the quick tests of what uses other packages with the lowest versions that pyproject.toml allows
	@.ci/lowest "$(LOWEST)" "$(BIN)/python"
	@METATREE_TESTS=quick $(LOWEST)/bin/python -m pytest -n 2 --dist worksteal $(LOWEST_TESTS) $(ARGS)

lock: ## write requirements/*.txt again: versions and hashes of all that is installed here; ARGS=--upgrade for the latest
	@python3 -m venv $(LOCK)
	@$(LOCK)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/lock.txt
	@$(LOCK)/bin/python .ci/lock $(LOCK)/bin/uv $(ARGS)

check: $(STAMP) ## format, lint, types, layers, docs; all of them, whatever the first says
	@failed=; \
	for check in "ruff format --check ." "ruff check ." "mypy" "lint-imports" "python docs/generate.py --check"; do \
		echo "== $$check"; $(BIN)/$$check || failed="$$failed [$$check]"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

format: $(STAMP) ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP) ## write the generated parts of docs/ again
	$(BIN)/python docs/generate.py

site: $(STAMP) $(SITE_STAMP) ## build the site of the documentation into build/site, without a network
	@$(BIN)/python -m docs.build_site $(SITE)/bin/zensical

$(SITE_STAMP): $(STAMP)
	@echo "installing Zensical into $(SITE) (once)" >&2
	@$(BIN)/python -m venv $(SITE)
	@$(SITE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/site.txt
	@rm -f $(SITE)/.installed-* && touch $@

soak: $(STAMP) ## kill searches at 1,000 random moments, take them up again and compare; some minutes
	@$(BIN)/python tests/soak_kill.py --kills 1000 $(ARGS)

soak-gateway: $(STAMP) ## kill tool gateways and their servers at random during 200 calls, and count what was done twice
	@$(BIN)/python tests/soak_gateway.py $(ARGS)

load-service: $(STAMP) ## 50 people at the page at once, 10,000 topics, 49,000 nodes; an hour, or ARGS="--minutes 10"
	@$(BIN)/python -m benchmarks.load_service $(ARGS)

soak-service: $(STAMP) ## kill servers and engines of the service at random while 100,000 queries are asked and answered
	@$(BIN)/python -m benchmarks.kill_service --jobs 100000 $(ARGS)

fuzz-service: $(STAMP) $(FUZZ_STAMP) ## try all that the service's OpenAPI description allows and forbids, as every role
	@$(BIN)/python -m benchmarks.fuzz_service $(FUZZ_ARGS) $(ARGS)

audit: $(STAMP) $(FUZZ_STAMP) ## look for known vulnerabilities of all that metatree depends on
	@$(BIN)/python .ci/audit "$(VENV)" "$(FUZZ)/bin/pip-audit"

$(FUZZ_STAMP): $(STAMP)
	@echo "installing schemathesis and pip-audit into $(FUZZ) (once)" >&2
	@$(BIN)/python -m venv $(FUZZ)
	@$(FUZZ)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/service.txt
	@rm -f $(FUZZ)/.installed-* && touch $@

bench: $(STAMP) ## print the tables of the benchmarks that need nothing but this folder
	@set -e; for script in benchmarks/bench_*.py benchmarks/overhead.py benchmarks/rules.py; do echo "== $$script"; $(BIN)/python $$script; done

bench-retrieval: $(STAMP) ## measure how well nodes are found: DATA=FOLDER, SETS="qasper locomo" (all of them by default)
	@$(BIN)/python -m benchmarks.retrieval $(or $(SETS),all) --data "$(DATA)" $(ARGS)

bench-answers: $(STAMP) ## measure what `ask` claims: WORK=FOLDER for sources and trees, ARGS="--data FOLDER --sets locomo" for sets of others
	@$(BIN)/python -m benchmarks.answers --work "$(WORK)" $(ARGS)

bench-peers: $(PEERS_STAMP) ## compare with other tree searches, write docs/benchmarks/peers.*; some minutes
	@$(PEERS)/bin/python -m benchmarks.peers --docs docs/benchmarks $(ARGS)

# What is compared with needs another openai than metatree does: a venv of its own, metatree in it without dependencies.
$(PEERS_STAMP): $(STAMP)
	@echo "installing the systems to compare with into $(PEERS) (once; some minutes)" >&2
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/peers.txt
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@rm -f $(PEERS)/.installed-* && touch $@

bench-planning: $(STAMP) $(PLANNERS_STAMP) ## compare plans and times with Aries and GTPyhop: make bench-planning DATA=FOLDER
	@$(BIN)/python -m benchmarks.planning --data "$(DATA)" --peers $(PLANNERS) $(ARGS)

$(PLANNERS_STAMP): $(STAMP)
	@echo "installing the planners to compare with into $(PLANNERS) (once)" >&2
	@$(BIN)/python -m venv $(PLANNERS)
	@$(PLANNERS)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/planning.txt
	@rm -f $(PLANNERS)/.installed-* && touch $@

bench-durable: $(STAMP) $(DURABLE_STAMP) ## run durable agents on PostgreSQL while their workers are killed, beside DBOS: ARGS="--agents 1000"
	@$(BIN)/python .ci/real postgresql
	@$(BIN)/python -m benchmarks.durable_agents --dbos $(DURABLE) $(ARGS)

$(DURABLE_STAMP): $(STAMP)
	@echo "installing DBOS into $(DURABLE) (once)" >&2
	@$(BIN)/python -m venv $(DURABLE)
	@$(DURABLE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/durable.txt
	@rm -f $(DURABLE)/.installed-* && touch $@

bench-service: $(STAMP) ## measure the query service against a route that does nothing: make bench-service DATABASE=URL
	@$(BIN)/python -m benchmarks.bench_service $(DATABASE) $(ARGS)

dist: $(STAMP) $(DIST_STAMP) ## build the wheel and the source archive into dist/, and check both
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist
	@$(DIST)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	@$(DIST)/bin/check-wheel-contents dist/*.whl

sbom: $(DIST_STAMP) ## write what metatree and all its extras bring, with versions and hashes, into build/sbom.cdx.json (CycloneDX)
	@mkdir -p build
	@$(DIST)/bin/cyclonedx-py requirements requirements/all.txt --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file build/sbom.cdx.json

$(DIST_STAMP): $(STAMP)
	@echo "installing what checks a distribution into $(DIST) (once)" >&2
	@$(BIN)/python -m venv $(DIST)
	@$(DIST)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements/dist.txt
	@rm -f $(DIST)/.installed-* && touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) $(PEERS) $(PLANNERS) $(DURABLE) $(FUZZ) $(SITE) $(MODEL) $(REAL) $(LOWEST) $(LOCK) $(DIST) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
