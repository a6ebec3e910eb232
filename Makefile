# `make demo` and `make test` are all a newcomer needs: both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: install demo test lint bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Tidings needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark,bench,dev]'
	@echo "compiling kernels (once)"
	@$(BIN)/python -c 'from tidings.pipeline.replica.warm import STEPS; from tidings.terminal import compile_kernels; compile_kernels(STEPS)'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tidings demo $(if $(SECONDS),--seconds $(SECONDS))

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

bench: $(STAMP)
	$(BIN)/tidings bench select

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
