# Each line is a command that one could type. `make demo` and `make test` need Python, make and a package index.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help setup demo test check bench images lock clean

help:
	@echo "make setup   make .venv and install what requirements.lock pins"
	@echo "make demo    judge three submissions on this machine and write their reports"
	@echo "make test    run the whole test suite"
	@echo "make check   lint, format, types, import contracts, house rules"
	@echo "make bench   measure, print a table, write build/bench.json"
	@echo "make images  build the containers' images; OFFLINE=1 needs no image registry, only Debian's packages"
	@echo "make lock    pin the newest versions in requirements.lock, requirements-dev.lock and containers/*.lock"
	@echo "make clean   remove .venv and everything that was built or cached"

setup: $(VENV)/.installed

demo: setup
	$(BIN)/grader data prepare digits
	$(BIN)/grader demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/house

bench: setup
	$(BIN)/python -m tests.bench

images: setup
	$(BIN)/grader images build $(if $(OFFLINE),--offline)

# The stamps make a second call a no-op until a lock file changes.
$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m pip install --require-hashes --requirement requirements-dev.lock
	@touch $@

# For every Python from 3.11 on and every platform; no address of an index ends up in the files.
LOCKED = --universal --python-version 3.11 --upgrade --quiet --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock"
COMPILE = $(BIN)/uv pip compile pyproject.toml $(LOCKED)
# What goes into the images: groups alone, without the package's own dependencies, held to what is locked already.
COMPILE_IMAGE = $(BIN)/uv pip compile $(LOCKED) --constraint requirements.lock

lock: $(VENV)/.installed-dev
	$(COMPILE) --group build --output-file requirements.lock
	$(COMPILE) --group build --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(COMPILE_IMAGE) --group image-torch --output-file containers/torch.lock
	$(COMPILE_IMAGE) --group image-train --output-file containers/train.lock
	$(COMPILE_IMAGE) --group image-extras --constraint containers/train.lock --output-file containers/extras.lock
	$(COMPILE_IMAGE) --group image-service --output-file containers/service.lock

clean:
	rm -rf $(VENV) .grader build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
