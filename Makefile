# Two commands do everything: `make demo` and `make test`. Both make .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: demo test test-faults lint clean

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

test: .venv/test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

test-faults: .venv/test
	CAPR_FAULTS=100 $(BIN)/python -m pytest tests/index/faults

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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pdf]'
	@touch $@

.venv/test: pyproject.toml | .venv/bin/python
	@echo "Installing capr and what its tests need into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@
