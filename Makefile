# Every command of this project. `make help` lists them; a pre-commit hook and .ci/run call the same ones.

VENV   := .venv
BIN    := $(VENV)/bin
# The first Python that is new enough. Another one: make demo PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PINS   := pyproject.toml constraints.txt
# What `make test` hands to pytest: make test ARGS="tests/unit -k cron"
ARGS   ?= tests
# Which proofs `make prove` runs, by name; empty means all of them: make prove PROVE="exactly_once"
PROVE  ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench prove clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.all ## Install Kizami into .venv and start the demo
	@$(BIN)/kizami demo

test: $(VENV)/.dev $(VENV)/.system ## Install what the tests need and run them all (ARGS="tests/unit -k cron" for some)
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/.dev ## Lint, check the format, the types and the floors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev ## Repair what can be repaired by machine
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(VENV)/.dev ## Run every benchmark, one after the other
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

prove: $(VENV)/.dev ## Run the proofs at full size and print their report
	@$(BIN)/python prove/run.py $(PROVE)

clean: ## Remove .venv and every cache
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below make a second call instant; they are redone when the pins change.

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Kizami needs Python 3.11 or newer, and none was found as python3." \
		"Install one, or name it: make demo PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Kizami needs Python 3.11 or newer, but" \
		"$(PYTHON) is older. Name another one: make demo PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make a virtual environment." \
		"On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.all: $(VENV)/.made $(PINS)
	@echo "Installing Kizami"
	@$(PIP) --editable '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.all $(PINS)
	@echo "Installing what tests, checks and benchmarks need"
	@$(PIP) --editable '.[all,bench,dev]'
	@touch $@

$(VENV)/.system: .ci/system-packages $(VENV)/.made
	@.ci/system-packages chromium libatomic1 faketime pgbouncer # Playwright's driver needs libatomic1
	@touch $@
