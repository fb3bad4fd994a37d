# `make run` and `make test` are all that a newcomer needs: each makes the virtual environment
# it uses and brings it up to date when pyproject.toml changes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
## PyTorch for the CPU, before what else asks for it: by itself that brings gigabytes of CUDA. A
## machine that cannot reach this index takes what its own has.
TORCH  := --no-deps --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0

.PHONY: run test test-slow test-lowest test-newest test-mutants test-libraries fuzz chaos lint types proto docs notebooks dist bench \
	bench-training bench-before study-libraries clean

## The main job: train the six federated agents of ebm-v3; ends with the skill table and figures.
## Four fifths of the paper's steps: no worse, and within 90 s on two cores that others use too.
run: $(VENV)/.installed
	$(BIN)/fedrain train --episodes 80 --out runs/six-agents --resume

## Style, types and the test suite.
test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.installed-test
	$(PIP) -e '.[test,simulation,gcm]'
	$(BIN)/python -m pytest -m slow

## The suite with the oldest dependencies that pyproject.toml admits.
test-lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct -e '.[test]'
	.venv-lowest/bin/python -m pytest -n 2 -W default  # old releases warn of each other

## Whether the tests notice when the code is wrong: mutations, each put to the tests that ought to.
## Stop and start again at will; `make test-mutants ONLY="agents: flower:"` runs those alone.
ONLY ?=
test-mutants: $(VENV)/.installed-test
	$(BIN)/python tests/mutants/run.py $(ONLY)

## The suite with the newest release of every dependency, whatever upper bound it has; which bounds
## keep it out is said at the end, also when a test fails.
NEWEST := .venv-newest/bin
test-newest:
	$(PYTHON) -m venv --clear .venv-newest
	$(NEWEST)/python -m pip install --quiet uv packaging
	$(NEWEST)/python tests/newest.py > .venv-newest/requirements.txt
	$(NEWEST)/uv pip install --quiet --python .venv-newest --upgrade -r .venv-newest/requirements.txt
	$(NEWEST)/uv pip install --quiet --python .venv-newest --no-deps -e .
	$(NEWEST)/python -m pytest -n 2 -W default; status=$$?; \
		$(NEWEST)/python tests/newest.py --report; exit $$status

## Wrong files and messages: COUNT of them (hours: make fuzz COUNT=1000000).
COUNT ?= 20000
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --count $(COUNT)

## Faults on a federation of six nodes and a climate, for MINUTES.
MINUTES ?= 120
chaos: $(VENV)/.installed-test
	$(BIN)/python -m tests.flower.chaos --minutes $(MINUTES)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

## The messages of the shared climate, from their description. An old compiler, so that the result
## suits every version of protobuf that Flower admits.
proto:
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/python -m pip install --quiet 'grpcio-tools==1.62.3' 'setuptools<80'
	.venv-proto/bin/python -m grpc_tools.protoc -I. --python_out=. fedrain/flower/climate.proto

## The site; notebooks are shown with the outputs that are stored in them.
docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W -q docs docs/_build/html

## Execute the notebooks of docs/learn and store their outputs; `make notebooks NAMES="train gcm"`.
NAMES ?=
notebooks: $(VENV)/.installed-docs
	$(PIP) -e '.[docs,flower,gcm]'
	$(BIN)/python docs/execute.py $(NAMES)

## Wheel and sdist in dist/: built, checked, installed, and run outside the checkout.
DIST := .venv-dist/bin/python
dist:
	$(PYTHON) -m venv --clear .venv-dist
	$(DIST) -m pip install --quiet build twine cffconvert
	rm -rf dist
	$(DIST) -m build --outdir dist .
	$(DIST) -m twine check --strict dist/*
	.venv-dist/bin/cffconvert --validate
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet dist/*.whl
	$(PYTHON) tests/outside.py "$(CURDIR)/.venv-wheel/bin/python"

## Speed against climlab, as ratios measured in one run.
bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/model_speed.py

## Speed of training now against that of another commit (make bench-before BEFORE=HEAD~1).
BEFORE ?= ff4f8ba
bench-before: $(VENV)/.installed
	$(BIN)/python benchmarks/before_and_after.py --before $(BEFORE)

## Speed of training against sbx, stable-baselines3 and the reference implementation (brings PyTorch).
bench-training:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet $(TORCH)
	.venv-peers/bin/python -m pip install --quiet -e '.[climlab]' -r benchmarks/requirements.txt
	.venv-peers/bin/python benchmarks/training_speed.py
	.venv-peers/bin/python benchmarks/agents_cost.py

## Other people's learners on our environments: that they run, and their scores (brings PyTorch).
test-libraries: .venv-libraries/.installed
	.venv-libraries/bin/python -m pytest -m slow tests/envs/test_libraries.py

study-libraries: .venv-libraries/.installed
	.venv-libraries/bin/python studies/libraries.py run

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-peers .venv-proto .venv-libraries .venv-dist .venv-wheel dist \
		docs/_build runs

.venv-libraries/.installed: pyproject.toml studies/libraries.txt
	$(PYTHON) -m venv .venv-libraries
	.venv-libraries/bin/python -m pip install --quiet $(TORCH)
	.venv-libraries/bin/python -m pip install --quiet -e '.[test]' -r studies/libraries.txt
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "make: FedRAIN needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.installed
