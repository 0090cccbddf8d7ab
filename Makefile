# Two commands do everything: `make demo` and `make test`. Both make .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: demo test test-faults test-browser screenshots chromium test-api soak demo-served lint clean

demo: .venv/core
	@$(BIN)/capr samples demo
	@echo '$$ capr read demo/notes' && $(BIN)/capr read demo/notes
	@echo '$$ capr segment demo/notes/p10-*-discharge.txt --by section'
	@$(BIN)/capr segment demo/notes/p10-*-discharge.txt --by section
	@echo '$$ capr annotate demo/notes/p10-*-discharge.txt'
	@$(BIN)/capr annotate demo/notes/p10-*-discharge.txt
	@echo '$$ capr index demo/library demo/notes demo/articles'
	@$(BIN)/capr index demo/library demo/notes demo/articles
	@echo '$$ capr search demo/library "What was the kidney injury attributed to?" -k 3'
	@$(BIN)/capr search demo/library "What was the kidney injury attributed to?" -k 3
	@echo '$$ capr serve demo/library'
	@if [ -t 1 ]; then $(BIN)/capr serve demo/library; else $(MAKE) --no-print-directory demo-served; fi

# Where nobody looks, the page is served only for as long as it takes to see that it is.
demo-served: .venv/core
	@coproc served { exec $(BIN)/capr serve demo/library --port 0; }; server=$$served_PID; \
	  read -r line <&$${served[0]}; echo "$$line"; kill $$server; wait $$server

test: .venv/test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

test-faults: .venv/test
	CAPR_FAULTS=100 $(BIN)/python -m pytest tests/index/faults

# The page in a real browser. CHROMIUM=/path/to/chromium if it is not on the PATH.
CHROMIUM ?= $(firstword $(shell command -v chromium chromium-browser google-chrome 2>/dev/null))

chromium:
	@test -n "$(CHROMIUM)" || { \
	  echo "There is no Chromium to show the page in. Fix: apt-get install chromium, or add CHROMIUM=/path/to/it"; exit 1; }

test-browser: chromium .venv/browser
	CAPR_CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest tests/browser

# Draws docs/screenshots anew. Look at every one of them before you commit it.
screenshots: chromium .venv/browser
	CAPR_CHROMIUM="$(CHROMIUM)" CAPR_SCREENSHOTS=docs/screenshots $(BIN)/python -m pytest tests/browser/test_screenshots.py

# Some thousands of requests made from the OpenAPI document, others each time.
test-api: .venv/test
	CAPR_REQUESTS=2500 $(BIN)/python -m pytest tests/serve/test_schemathesis.py -s

# Ten minutes of load: nothing may fail, and memory has to stay flat.
soak: .venv/test
	cd bench && ../$(BIN)/python serve.py --soak 10 --connections 4

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "capr needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V). Fix: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making .venv ..."
	@$(PYTHON) -m venv .venv

# An install is repeated only when pyproject.toml has changed since.
.venv/core: pyproject.toml | .venv/bin/python
	@echo "Installing capr into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pdf,serve]'
	@touch $@

.venv/test: pyproject.toml | .venv/bin/python
	@echo "Installing capr and what its tests need into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

.venv/browser: pyproject.toml | .venv/bin/python
	@echo "Installing what the tests of the page need into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@
