# Each line is a command that one could type. `make demo` and `make test` need Python, make and a package index.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Thousands of interpreters start below, and each would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE
# Newer engines bring it as a plug-in, older ones as a program of its own.
COMPOSE := $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)

.PHONY: help setup demo serve test test-all test-gpu check types house fuzz bench images secrets up texts lock clean

help:
	@echo "make setup   make .venv and install what requirements.lock pins"
	@echo "make demo    judge three submissions on this machine and write their reports"
	@echo "make serve   the whole service on this machine: upload, queue, reports; Ctrl-C ends it"
	@echo "make test    check everything that needs no container or browser, in minutes; judges kept evidence again"
	@echo "make test-all  and everything else, for real: containers, browser, service, every promise"
	@echo "make test-gpu  what takes a real GPU; keeps what its runs left in build/gpu, or in RECORDINGS=folder"
	@echo "make check   lint, format, types, import contracts, house rules"
	@echo "make fuzz    throw anything at whatever reads learners' files, MINUTES=10 for each reader"
	@echo "make bench   measure, print a table, write build/bench.json"
	@echo "make images  build the containers' images; OFFLINE=1 needs no image registry, only Debian's packages"
	@echo "make up      make secrets once, and start the service with docker-compose (after make images)"
	@echo "make lock    pin the newest versions in requirements.lock, requirements-dev.lock and containers/*.lock"
	@echo "make texts   gather the pages' texts into grader/translation/*.po, to be translated there"
	@echo "make clean   remove .venv and everything that was built or cached"

setup: $(VENV)/.installed

demo: setup
	$(BIN)/grader data prepare digits
	$(BIN)/grader demo

serve: setup
	$(BIN)/grader serve

# The inner ring needs no container, no browser and no training of many seconds, but for one run of each verdict; the
# promises of all tasks are judged again from evidence that real runs left. The outer ring is all the rest. The house rules
# are `make check`'s.
INNER = "not slow and not browser and not gpu"
OUTER = "(slow or browser) and not further"
# What measures how soon something ends, looks whether anything is left behind, or brings up the whole service, runs last
# and in two rows only, one of which is the attacks: half of their time is waiting. Everything else runs side by side
# first. There one file mostly waits for processes of its own, so there is a worker more than cores.
ALONE = $(addprefix tests/acceptance/test_,assessment.py compose.py containers.py) tests/browser tests/trust
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 4) + 1)')
ROWS = --dist loadfile --no-loadscope-reorder
BESIDE = -n $(WORKERS) $(ROWS)
# Real processes under real deadlines: a machine that stands still for seconds fails one of thousands of tests. What has
# failed is run once more with nothing beside it, and that decides; what passes then is named as a fault to mend.
PYTEST = $(BIN)/python -m tests.twice
test: $(VENV)/.installed-dev
	$(PYTEST) -m $(INNER) $(BESIDE) --ignore=tests/house

# All parts always run. The last one is what shows once more what was shown, on a machine that has time for it.
test-all: test
	@$(PYTEST) --durations=20 -m $(OUTER) $(BESIDE) $(addprefix --ignore=,$(ALONE)); beside=$$?; \
	$(PYTEST) --durations=20 -m $(OUTER) -n 2 $(ROWS) $(ALONE); alone=$$?; \
	$(PYTEST) -m further tests/acceptance; code=$$?; [ $$beside -eq 0 ] || exit $$beside; [ $$alone -eq 0 ] || exit $$alone; \
	exit $$code

# For a machine with at least one GPU, alone on it; about twenty minutes. What it keeps is what other machines test with.
RECORDINGS ?= build/gpu
test-gpu: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m gpu --durations=20 --gpu-recordings=$(RECORDINGS) --junit-xml=$(RECORDINGS)/junit.xml \
	tests/gpu

# `make --jobs 2 check` does the two halves side by side.
check: types house

types: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

house: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q tests/house

# For each reader of what learners write; what is found is told with its seed, and becomes a case of tests/untrusted.
MINUTES ?= 10
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.untrusted --minutes $(MINUTES)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench

images: setup
	$(BIN)/grader images build $(if $(OFFLINE),--offline)

secrets:
	containers/secrets.sh $(or $(GRADER_SECRETS),secrets)

up: secrets
	$(COMPOSE) up --detach
	@echo "http://localhost:$(or $(GRADER_PORT),8000) in a moment; '$(COMPOSE) logs setup' shows the first administrator's password"

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
	$(COMPILE) --group build --extra judge --extra service --output-file requirements.lock
	$(COMPILE) --group build --extra judge --extra service --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(COMPILE_IMAGE) --group image-torch --output-file containers/torch.lock
	$(COMPILE_IMAGE) --group image-train --output-file containers/train.lock
	$(COMPILE_IMAGE) --group image-extras --constraint containers/train.lock --output-file containers/extras.lock
	$(COMPILE_IMAGE) --group image-service --output-file containers/service.lock

# What is new stands in the catalogs without a translation, which a test refuses.
TEXTS = grader/report grader/web $(wildcard grader/delivery)
texts: $(VENV)/.installed-dev
	mkdir -p build
	$(BIN)/pybabel --quiet extract --mapping-file pyproject.toml --keyword _ --keyword counted:1,2 --no-location --sort-by-file \
	--project grader --output-file build/texts.pot $(TEXTS)
	for catalog in grader/translation/*.po; do $(BIN)/pybabel --quiet update --ignore-pot-creation-date --no-fuzzy-matching --width 120 \
	--input-file build/texts.pot --locale $$(basename $$catalog .po) --output-file $$catalog || exit; done

clean:
	rm -rf $(VENV) .grader build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
