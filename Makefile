# Every target sets itself up: a .venv with the pinned versions. Needed beforehand: Python 3.11-3.13 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# Whether an NVIDIA card works. A broken driver can make nvidia-smi hang.
ANSWERS := timeout 20 nvidia-smi --list-gpus

# Where no bytecode is kept, each process of the tests compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Fewer messages from TensorFlow.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help demo app test test-all cluster-test fuzz trainer-tests node-tests lab lab-tests soak check lint types-elsewhere format mutants bench gui-tour dist clean

help:  ## Lists what can be made.
	@sed -nE 's/^([a-z-]+):.*##  *(.*)/  make \1\t\2/p' Makefile | expand -t 18

demo: $(READY)  ## Two nodes on this machine find each other, pair and train the digits script.
	$(BIN)/tandem demo

app: $(READY)  ## Opens the window.
	$(BIN)/tandem

# Fast tests use every core. Tests with nodes and windows run one after the other, because these find each other by name
# on the loopback; trainers without nodes, and laptops in namespaces, run beside them. Tests that promise a time run
# alone.
FAST := not real and not cluster and not lab
TRAINERS := cluster and not real and not lab and not launchers
# Leaves out the tests marked `complete`.
SHORT ?= --short
PYTEST := $(BIN)/python -m pytest tests $(OPTIONS)
FAST_TESTS := $(PYTEST) --numprocesses logical --maxprocesses 4 -m "$(FAST)" $(SHORT)
# Names the slowest tests.
SLOWEST := --durations=12 --durations-min=15
BESIDE := --jobs=3 --keep-going --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Every part runs, even if an earlier one fails. The output of parallel parts is shown when each ends.
test: $(READY)  ## Every test; of the exactness matrix, every scenario at one share (about half an hour on 2 cores).
	@failed=0; \
	$(FAST_TESTS) || failed=1; \
	$(MAKE) $(BESIDE) trainer-tests node-tests lab-tests || failed=1; \
	$(PYTEST) -m timed || failed=1; \
	exit $$failed

test-all:  ## Every test and the whole matrix, from an empty cache.
	rm -rf .pytest_cache
	@$(MAKE) --no-print-directory test SHORT=

fuzz: $(READY)  ## 650 random models, each in one process and in two members; FIRST=1 is the first seed, STEPS=12 an epoch.
	TANDEM_FUZZ_MODELS=500 TANDEM_FUZZ_FIRST=$(or $(FIRST),1) TANDEM_FUZZ_STEPS=$(or $(STEPS),12) \
		$(BIN)/python -m pytest $(OPTIONS) tests/exactness/test_random_models.py

cluster-test: $(READY)  ## Real Slurm and real Ray on this machine train the digits script; names what is missing.
	$(PYTEST) -m launchers

trainer-tests: $(READY)
	@$(PYTEST) $(SLOWEST) -m "$(TRAINERS) and not timed" $(SHORT)

node-tests: $(READY)
	@$(PYTEST) $(SLOWEST) -m "real and not lab and not timed" $(SHORT)

lab:  ## The complete lab: laptops as network namespaces, with every fault (Linux).
	@$(MAKE) --no-print-directory lab-tests SHORT=

lab-tests: $(READY)
	@$(PYTEST) $(SLOWEST) -m "lab and not timed" $(SHORT)

soak: $(READY)  ## Three laptops train for MINUTES (15) with a random fault every 45 s; SEED=1 repeats.
	$(BIN)/python -m tests.lab.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

check: lint  ## Format, lint, strict types, fast tests.
	$(FAST_TESTS) -q

lint: $(READY)  ## Format, lint, strict types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

types-elsewhere: $(READY)  ## Strict types as Windows and macOS see the code.
	$(BIN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32 app core tandem_laptops
	$(BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin app core tandem_laptops

format: $(READY)  ## Formats, and mends what lint can mend.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutants: $(READY)  ## Whether the tests notice when the code is changed for the worse.
	$(BIN)/python -m tests.mutants

bench: $(READY)  ## Side-by-side measurements; prints ratios.
	$(BIN)/python -m bench

gui-tour: $(READY)  ## Two windows on two virtual laptops, driven by mouse and keyboard; leaves screenshots. The tray.
	$(BIN)/python -m tests.tour
	$(BIN)/python -m pytest -q tests/tour/test_tray.py

dist: $(READY)  ## A folder with the frozen program, smoke-tested; where Debian's tools are, a .deb of it.
	$(BIN)/python packaging/build.py
	@if command -v dpkg-deb >/dev/null; then set -x; $(BIN)/python packaging/deb.py; fi

$(READY): pyproject.toml resources/constraints.txt
	$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info < (3, 14); sys.exit(None if ok else "Tandem needs Python 3.11, 3.12 or 3.13. Name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@extras=dev; \
	if $(ANSWERS) >/dev/null 2>&1; then extras=dev,gpu; echo "nvidia-smi answers: TensorFlow comes with its CUDA packages."; fi; \
	set -x; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint resources/constraints.txt --editable ".[$$extras]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
