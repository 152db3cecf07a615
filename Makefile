# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint types imports tests docs format clean

help:
	@echo "make demo    set up, then compare FixMatch with CAP, CAI and CADR on embedded data"
	@echo "make test    set up, then run every check: lint, types, import directions, tests"
	@echo "make docs    set up, then build the documentation site in build/site"
	@echo "make fuzz    put 2,000 damaged files through every command, within half an hour"
	@echo "make format  rewrite the sources the way the linter wants them"
	@echo "make clean   remove the environment and caches"

# The environment is remade when the pins or the project's own description change.
.venv/current: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cadr needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: .venv/current
	$(BIN)/cadr demo

test: .venv/current lint types imports tests

lint: .venv/current
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/current
	$(BIN)/mypy

imports: .venv/current
	$(BIN)/lint-imports

# One thread each: the tests run beside each other, those of a group in one process.
tests: .venv/current
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadgroup

docs: .venv/current
	OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict --quiet

fuzz: .venv/current
	$(BIN)/python benchmarks/fuzz.py --files 2000 --minutes 30

format: .venv/current
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
