# Needs python3 (3.11 or newer) and make. Everything is installed into .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_KB := .graphrag-demo
# as the command reads it: the environment comes first, and no shell expands what is in it
READ_ENV = $(if $(wildcard .env),$(BIN)/python -m dotenv run --no-override --)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint types tests format studio bench clean

help:  ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11; set PYTHON=python3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[local,sqlite,server]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[local,docs,sqlite,postgres,server,tools,sandbox,studio,notebook]' --group dev
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## Ingest examples/ and ask three questions; no key, no server
	@echo "Reading examples/ (the embedder needs about half a minute) ..."
	@$(BIN)/graphrag-agent ingest examples --kb $(DEMO_KB)
	@for question in \
		"Compare the warranty of the Brook S2 and the Weir G4" \
		"远程办公每周最多几天？有哪些例外？" \
		"What does E-1042 mean and how do I clear it?"; \
	do \
		printf '\n=== %s\n' "$$question"; \
		$(BIN)/graphrag-agent ask "$$question" --kb $(DEMO_KB) --trace || exit 1; \
	done

test: lint types tests  ## Lint, types and the whole test suite

lint: $(VENV)/.installed-dev  ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## Check types
	$(BIN)/mypy

tests: $(VENV)/.installed-dev  ## Run the tests only
	$(BIN)/pytest

format: $(VENV)/.installed-dev  ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

studio: $(VENV)/.installed-dev  ## Serve the graph for LangGraph Studio on loopback, without telemetry
	LANGGRAPH_CLI_NO_ANALYTICS=1 LANGSMITH_TRACING=false $(READ_ENV) $(BIN)/langgraph dev --host 127.0.0.1 --no-browser

bench: $(VENV)/.installed-dev  ## Measure the agent loop; with DATA=DIR (corpus.jsonl, queries.jsonl) retrieval too
	$(BIN)/python -m benchmarks.agent_loop
	@[ -z "$(DATA)" ] || $(BIN)/python -m benchmarks.retrieval --data $(DATA)

clean:  ## Remove what the targets made
	rm -rf $(VENV) $(DEMO_KB) .langgraph_api .pytest_cache .mypy_cache .ruff_cache .hypothesis
