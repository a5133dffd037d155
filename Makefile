# Every target sets up what it needs: a virtual environment in .venv, made once.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow test-net-full lint bench docs clean clean-kernels

demo: .venv/installed
	$(BIN)/cofactor demo

test: .venv/installed
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

test-slow: .venv/installed
	$(BIN)/pytest -n 2 --dist loadfile -m slow

test-net-full: .venv/installed
	$(BIN)/pytest -n 2 --dist loadfile -m net

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m benchmarks

docs: .venv/documented
	$(BIN)/mkdocs build --strict

clean: clean-kernels
	rm -rf .venv .bench site build dist

clean-kernels:
	find src -name '*.nb[ic]' -delete

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "cofactor needs Python 3.11 or newer; name one with make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.venv/documented: pyproject.toml | .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
