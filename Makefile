# The commands of this repository. `make help` lists them.
#   PYTHON=python3.13 VENV=.venv313 make test    another interpreter in an environment of its own
#   HOST=0.0.0.0 PORT=9000 make demo             another address for the demo

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What `manage.py check --deploy` is asked about: the settings of a real deployment.
DEPLOY := env DEBUG=0 SECRET_KEY=only-for-make-check-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJ \
	ALLOWED_HOSTS=steward.example DATABASE_URL=sqlite:///:memory:

# The tests that lean most on other people's packages, and the extras whose lowest versions they are run on.
LEANING := tests/models tests/domain/test_registry.py tests/flows/test_turn.py tests/governance/test_queries.py \
	tests/console/test_shell.py tests/console/test_spend.py $(addprefix tests/edges/test_,admin.py checks.py \
	http_base.py http_chat.py http_threads.py openapi.py own_store.py ownership.py)
EXTRAS := $(addprefix --extra ,postgres redis daphne openai anthropic unfold)
OLDEST ?= python3.11
NEWEST ?= python3.13

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test versions check format pins clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: $(VENV)/.dev $(VENV)/.project ## make the environment with everything for tests and checks

demo: $(VENV)/.demo $(VENV)/.project ## start the demo site: chat, API, admin and worker in one process
	@$(MANAGE) migrate --verbosity 0
	@$(MANAGE) demo_data
	@exec $(MANAGE) demo

test: setup ## run every test on SQLite and on PostgreSQL (ARGS= for pytest)
	$(BIN)/python -m tests $(ARGS)

versions: ## the tests that lean most on others, on the newest and on the lowest versions (NEWEST=, OLDEST= interpreters)
	$(MAKE) PYTHON=$(NEWEST) VENV=.venv-newest setup
	.venv-newest/bin/python -m pytest -n 2 $(LEANING)
	$(MAKE) PYTHON=$(OLDEST) VENV=.venv-lowest setup
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --upgrade --resolution lowest-direct \
		-r pyproject.toml $(EXTRAS)
	.venv-lowest/bin/python -m pytest -n 2 $(LEANING)

check: setup ## linters, types, layers, migrations, deployment and OpenAPI checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(MANAGE) makemigrations --check --dry-run
	$(DEPLOY) $(MANAGE) check --deploy --fail-level WARNING
	$(MANAGE) spectacular --validate --fail-on-warn --file /dev/null

format: setup ## let ruff put the files in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pins: setup ## choose the newest versions and write requirements/*.txt again
	cd requirements && PIN="$(abspath $(BIN))/uv pip compile --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header --upgrade --quiet" \
	&& $$PIN dev.in -o dev.txt && $$PIN demo.in -c dev.txt -o demo.txt

clean: ## remove the environment, the demo's data and all caches
	rm -rf $(VENV) .venv-newest .venv-lowest build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis var
	rm -f demo.sqlite3 demo.sqlite3-wal demo.sqlite3-shm
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- the environment -------------------------------------------------------------------------------------------------

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("django-steward needs Python 3.11 or newer; use PYTHON=python3.x" \
		if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# uv is among the pins: pip fetches it, checked by its hash, and it installs the rest in seconds.
# Where uv does not run or trusts nobody, pip reads the very same file.
$(VENV)/.demo $(VENV)/.dev: $(VENV)/.%: requirements/%.txt | $(VENV)/.made
	@echo "Installing requirements/$*.txt into $(VENV) ..."
	@sed -n '/^uv==/,/[^\\]$$/p' $< > $(VENV)/uv.txt
	@$(PIP) --require-hashes -r $(VENV)/uv.txt \
		&& $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $< \
		|| { echo "uv could not; pip takes a minute longer ..." && $(PIP) --require-hashes -r $<; }
	@touch $@

$(VENV)/.project: pyproject.toml | $(VENV)/.made
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
