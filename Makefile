# `make` alone lists the targets. Each one installs what it needs into .venv, once.

VENV := .venv
BIN := $(VENV)/bin
# 3.11 first: the pins of requirements.txt are known to work together there.
PYTHONS := python3.11 python3.12 python3.13 python3
# What is imported is compiled then; most of what is installed never is.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.installed-dev

# As many as there are cores; each takes 2 GiB.
IN_PROCESSES := -n logical --maxprocesses 4 --dist loadfile

.PHONY: help demo test test-baselines test-beam test-app test-notebooks notebooks docs lint train-small clean

help:
	@echo "make demo            discover a law in examples/yeast_growth.csv"
	@echo "make test            run the tests"
	@echo "make test-baselines  install the methods we compare with and test them"
	@echo "make test-beam       install Apache Beam and test data generation on it"
	@echo "make test-app        install what the page needs and test it in a browser (Chromium)"
	@echo "make test-notebooks  run the notebooks in colabs/, which stay as they are"
	@echo "make notebooks       run the notebooks in colabs/ and keep what they show"
	@echo "make docs            make the documentation, in build/site"
	@echo "make lint            check style (ruff) and types (basedpyright)"
	@echo "make train-small     train the config small on fresh data, into runs/small"
	@echo "make clean           remove .venv and all caches; runs/ stays"

demo: $(INSTALLED)
	$(BIN)/python -m nsode_jax.discover examples/yeast_growth.csv

# Whole files side by side, as the tests of a file share what takes long to make. Those of several
# devices by themselves: the others take two thirds of the time where JAX has one.
test: $(DEV_INSTALLED)
	$(BIN)/python -m pytest $(IN_PROCESSES) -m "not devices"
	$(BIN)/python -m pytest $(IN_PROCESSES) -m devices \
	  $$(grep -l "mark.devices" tests/*_test.py)

test-baselines: $(DEV_INSTALLED)
	@echo "Installing SINDy, gplearn and Operon into $(VENV)"
	@$(PIP) -e '.[dev,baselines]'
	$(BIN)/python -c 'import pysindy, gplearn, pyoperon'
	$(BIN)/python -m pytest tests/baselines_test.py tests/system_baselines_test.py

# Beam comes last: it brings older versions of protobuf and pyarrow.
test-beam: $(DEV_INSTALLED)
	@echo "Installing Apache Beam into $(VENV)"
	@$(PIP) -e '.[dev,beam]'
	$(BIN)/python -c 'import apache_beam'
	$(BIN)/python -m pytest tests/beam_test.py

# Chromium and its driver come with the system (on Debian: apt install chromium-driver); without
# them only what needs no browser is tested.
test-app: $(DEV_INSTALLED)
	@echo "Installing NiceGUI and Selenium into $(VENV)"
	@$(PIP) -e '.[dev,app]' 'selenium>=4.20'
	$(BIN)/python -c 'import nicegui, selenium'
	$(BIN)/python -m pytest tests/app_test.py

notebooks: $(DEV_INSTALLED)
	$(BIN)/python colabs/run.py colabs/*.ipynb

test-notebooks: $(DEV_INSTALLED)
	$(BIN)/python colabs/run.py --check colabs/*.ipynb

docs: $(DEV_INSTALLED)
	@echo "Installing MkDocs into $(VENV)"
	@$(PIP) -e '.[dev,docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: $(DEV_INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python

train-small: $(INSTALLED)
	$(BIN)/python -m nsode_jax.train --config small --workdir runs/small

# A name on the PATH is not enough: pyenv's shims exist without a Python behind them.
$(BIN)/python:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	    >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "nsode_jax needs Python 3.11 or later with the venv module;" \
	    "none of these is: $(PYTHONS). Install one (on Debian: apt install python3-venv)" \
	    "or name it: make PYTHONS=/path/to/python ..." >&2; exit 1; \
	fi; \
	echo "Creating $(VENV) with $$($$found --version)"; \
	$$found -m venv $(VENV)

$(INSTALLED): requirements.txt pyproject.toml | $(BIN)/python
	@echo "Installing nsode_jax and what it needs into $(VENV) (the first time: a few minutes)"
	@$(PIP) -r requirements.txt
	@$(PIP) -e '.[train]'
	@touch $@

$(DEV_INSTALLED): $(INSTALLED)
	@echo "Installing the test tools into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
