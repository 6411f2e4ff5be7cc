# Every target sets itself up: a .venv with the pinned versions. Needed beforehand: Python 3.11-3.13 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# No GPU chatter from TensorFlow, and no reaching for a screen where none is.
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: demo app test check bench gui-tour dist clean

demo: $(READY)  ## Two nodes on this machine find each other, pair and train the digits script.
	$(BIN)/tandem demo

app: $(READY)  ## Opens the window.
	$(BIN)/tandem

test: $(READY)  ## Every test.
	$(BIN)/python -m pytest tests

check: $(READY)  ## Format, lint, strict types, fast tests.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests -q -m "not real and not cluster and not lab"

bench: $(READY)  ## Side-by-side measurements; prints ratios.
	$(BIN)/python -m bench

gui-tour: $(READY)  ## Two windows on two virtual laptops, driven by mouse and keyboard; leaves screenshots. The tray.
	$(BIN)/python -m tests.tour
	$(BIN)/python -m pytest -q tests/tour/test_tray.py

dist: $(READY)  ## A folder with the frozen program, smoke-tested.
	$(BIN)/python packaging/build.py

$(READY): pyproject.toml resources/constraints.txt
	$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info < (3, 14); sys.exit(None if ok else "Tandem needs Python 3.11, 3.12 or 3.13. Name one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint resources/constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
