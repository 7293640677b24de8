# Every target works on a fresh clone: it makes .venv and installs what it needs, once.
#   make demo    two bodies, a linkage in motion, how fast          (runtime packages only)
#   make test    lint, format, types, tests                         (with the peers: pin, mujoco)
#   make test-bridges   all tests of JAX and torch, with torch installed beside the environment
#   make test-gpu   the tests that need an NVIDIA card; PYTEST="python3 -m pytest" takes an environment that is there
#   make test-ptx   PTX of the whole catalogue, on any machine; registers and spills where ptxas can be had
#   make search  the random tests with new examples: each run looks elsewhere
#   make bench   Cardan and the peers in the same run
#   make bench-gpu   the same on an NVIDIA card, with the limits of the card; peers: frax, mujoco-mjx, mujoco-warp
#   make docs    the documentation as a site, in site/
#   make bounds  part of the tests at the lower bounds of the dependencies, in an environment of its own
# Options: PYTHON=python3.12   WORKERS=8   ARGS="..." (passed to pytest or to the benchmark)

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
ARGS    ?=
PYTEST  ?=
# The build for the CPU, from an index that has it. TORCH=torch takes the usual one, on Linux with gigabytes of CUDA.
TORCH   ?= torch==2.13.0+cpu
BRIDGES := tests/product/test_autodiff.py tests/product/test_autodiff_runs.py \
    'tests/product/test_examples.py::test_example_runs[08_learning_a_mass]' \
    'tests/product/test_examples.py::test_example_runs[09_gradient_of_a_rollout]'

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
TAG     := $(shell $(PYTHON) -c 'import sys; print(sys.implementation.cache_tag)')
MADE    := $(VENV)/.made-$(TAG)
RUNTIME := $(VENV)/.runtime
TESTING := $(VENV)/.testing

.PHONY: help demo test test-bridges test-gpu test-ptx search bench bench-gpu bounds docs lint format clean
help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' $(firstword $(MAKEFILE_LIST))

demo: $(RUNTIME)
	$(BIN)/cardan demo

# With byte code, whatever the environment says: many tests start Python again.
test: lint
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not bridges" $(ARGS)

test-bridges: $(TESTING)
	test -d $(VENV)/torch || $(PIP) install --target $(VENV)/torch '$(TORCH)'
	PYTHONPATH=$(CURDIR)/$(VENV)/torch $(BIN)/python -m pytest $(BRIDGES) $(ARGS)

# Without PYTEST in the usual environment. Each test says why it is skipped, on a machine without a card all of them.
# Each file has a process of its own: an error of a card spoils the process, and libraries hold its memory.
test-gpu: $(if $(PYTEST),,$(TESTING))
	@status=0; export PYTHONPATH="$(CURDIR)/src:$(CURDIR):$$PYTHONPATH"; for file in tests/gpu/test_*.py; do \
	    $(or $(PYTEST),$(BIN)/python -m pytest) -p no:cacheprovider -vv -rs --durations=3 $$file $(ARGS); \
	    code=$$?; test $$code = 0 || test $$code = 5 || status=1; \
	done; exit $$status

test-ptx: $(TESTING)
	$(BIN)/python -m tests.ptx $(ARGS)

# What is found becomes a fixed example of its test: @example(...), with the defect mended.
search: $(TESTING)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m hypothesis --hypothesis-profile=search $(ARGS)

lint: $(TESTING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers $(WORKERS)

format: $(TESTING)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(TESTING)
	$(BIN)/python -m benchmarks $(ARGS)

bench-gpu: $(TESTING)
	$(BIN)/python -m benchmarks.gpu $(ARGS)

docs: $(TESTING)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in site/index.html; $(BIN)/mkdocs serve shows it as you write"

bounds: $(TESTING)
	$(BIN)/python -m tests.product.package --lower

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A stamp is written last, so an interrupted step is repeated. Another PYTHON starts the environment anew.
$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cardan needs Python 3.11 or later, \
	this is " + sys.version.split()[0] + "; choose another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUNTIME): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

# All at once; then byte code on all cores, which pip would write on one, of what the tests import.
$(TESTING): $(MADE) pyproject.toml constraints.txt
	$(PIP) install --no-compile --constraint constraints.txt --editable '.[dev,peers]'
	-@$(BIN)/python -m compileall -q -j 0 -x '[/\\](tests?|pip|mypyc?|OpenGL|fontTools)[/\\]' $(VENV)/lib > /dev/null 2>&1
	@touch $(RUNTIME) $@
