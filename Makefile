# `make demo` and `make test` are all a newcomer needs: both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
DEV_STAMP := $(VENV)/.stamp-dev
COMPILE := $(BIN)/python -c 'from tidings.pipeline import warm; from tidings.terminal import compile_kernels;
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install demo test lint bench clean

install: $(STAMP)

# Kernels are compiled while pip brings Spark, which takes about as long.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Tidings needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@echo "compiling kernels (once), and installing Spark"
	@$(COMPILE) compile_kernels(warm.STEPS)' & \
	$(PIP) -e '.[spark]'; status=$$?; wait $$! && exit $$status
	touch $(STAMP)

$(DEV_STAMP): $(STAMP)
	@$(COMPILE) compile_kernels(warm.MESSAGE_STEPS)' & \
	$(PIP) -e '.[spark,bench,dev]'; status=$$?; wait $$! && exit $$status
	touch $(DEV_STAMP)

demo: $(STAMP)
	$(BIN)/tidings demo $(if $(SECONDS),--seconds $(SECONDS))

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Types and style are checked beside the first tests, which wait for Spark to start.
test: $(DEV_STAMP)
	@$(MAKE) --no-print-directory lint & \
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder; status=$$?; wait $$! && exit $$status

bench: $(DEV_STAMP)
	$(BIN)/tidings bench select

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
