# `make demo` shows capr at work, and `make test` tests it. Both create .venv if it is missing.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: demo docs docs-check prose sbom test test-faults test-browser screenshots chromium test-api soak demo-served lint clean

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

# Without a terminal, serve the page only until it is up.
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
	  echo "Chromium is not installed. Fix: apt-get install chromium, or add CHROMIUM=/path/to/it"; exit 1; }

test-browser: chromium .venv/browser
	CAPR_CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest tests/browser

# Redraw docs/screenshots. Look at every picture before you commit it.
screenshots: chromium .venv/browser
	CAPR_CHROMIUM="$(CHROMIUM)" CAPR_SCREENSHOTS=docs/screenshots $(BIN)/python -m pytest tests/browser/test_screenshots.py

# Send thousands of requests made from the OpenAPI document, different ones each time.
test-api: .venv/test
	CAPR_REQUESTS=2500 $(BIN)/python -m pytest tests/serve/test_schemathesis.py -s

# Ten minutes of load: no request may fail, and memory must stay flat.
soak: .venv/test
	cd bench && ../$(BIN)/python serve.py --soak 10 --connections 4

# Serve the documentation at http://127.0.0.1:8001, and reload it when it changes.
docs: .venv/docs
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

# Build the documentation; a broken link or a page that is missing from the menu is an error.
docs-check: .venv/docs
	$(BIN)/mkdocs build --quiet --strict

lint: .venv/test prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Check the words of docs, docstrings, comments and messages.
prose: .venv/test
	$(BIN)/python tools/prose/check.py

# Write the software bill of materials (CycloneDX) of capr and its dependencies, as `pip install '.[pdf,serve]'` installs
# them.
sbom: .venv/sbom
	rm -rf build/sbom
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check '.[pdf,serve]'
	build/sbom/bin/python -m pip uninstall --quiet --yes pip
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file build/capr.cdx.json \
	  build/sbom/bin/python
	rm -rf build/sbom
	@echo "build/capr.cdx.json"

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "capr needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V). Fix: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making .venv ..."
	@$(PYTHON) -m venv .venv

# Install again only if pyproject.toml has changed.
.venv/core: pyproject.toml | .venv/bin/python
	@echo "Installing capr into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pdf,serve]'
	@touch $@

.venv/test: pyproject.toml | .venv/bin/python
	@echo "Installing capr and its test dependencies into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

.venv/browser: pyproject.toml | .venv/bin/python
	@echo "Installing the dependencies of the page tests into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@

.venv/sbom: pyproject.toml | .venv/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[sbom]'
	@touch $@

.venv/docs: pyproject.toml | .venv/bin/python
	@echo "Installing the documentation tools into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@
