# `make demo` and `make test` are all a newcomer needs: both install into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
SPARK_STAMP := $(VENV)/.stamp-spark
DEV_STAMP := $(VENV)/.stamp-dev
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadgroup --no-loadscope-reorder

.PHONY: install demo picture test test-all explore lint bench clean

install: $(STAMP)

# Kernels are compiled while pip brings the rest, which takes about as long. Python compiles modules when they are used.
define INSTALL
@$(PYTHON) -c 'import sys; sys.exit("Tidings needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
$(PYTHON) -m venv $(VENV)
$(PIP) -e .
@echo "compiling kernels (once), and installing [$(EXTRAS)]"
@$(BIN)/python -c 'from tidings.pipeline import warm; from tidings.terminal import compile_kernels; compile_kernels(warm.STEPS)' & \
$(PIP) -e '.[$(EXTRAS)]'; status=$$?; wait $$! && exit $$status
endef

$(STAMP): EXTRAS := server,client,postgres
$(STAMP): pyproject.toml constraints.txt
	$(INSTALL)
	touch $(STAMP)

$(SPARK_STAMP): EXTRAS := server,client,postgres,spark
$(SPARK_STAMP): pyproject.toml constraints.txt
	$(INSTALL)
	touch $(STAMP) $(SPARK_STAMP)

$(DEV_STAMP): EXTRAS := spark,bench,dev
$(DEV_STAMP): pyproject.toml constraints.txt
	$(INSTALL)
	touch $(STAMP) $(SPARK_STAMP) $(DEV_STAMP)

demo: $(SPARK_STAMP)
	$(BIN)/tidings demo $(if $(SECONDS),--seconds $(SECONDS))

# The picture in README.md: half a minute of the demo, its last screen.
picture: $(SPARK_STAMP)
	$(BIN)/tidings demo --seconds 30 --picture docs/img/demo.svg > /dev/null

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Types and style are checked beside the first tests, which wait for Spark to start.
test: $(DEV_STAMP)
	@$(MAKE) --no-print-directory lint & \
	$(PYTEST) $(TESTS); status=$$?; wait $$! && exit $$status

# Also what takes long or needs Kafka: tests marked `extended`.
test-all:
	@$(MAKE) --no-print-directory test TESTS="-m ''"

# All property tests with random examples: `make explore MINUTES=60`.
explore: $(DEV_STAMP)
	$(BIN)/python tests/explore.py $(or $(MINUTES),10)

bench: $(DEV_STAMP)
	$(BIN)/tidings bench mix

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
