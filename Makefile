# `make run` and `make test` are all that a newcomer needs: each makes the virtual environment
# it uses and brings it up to date when pyproject.toml changes.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test test-slow test-lowest test-libraries lint types proto docs bench bench-training \
	bench-before study-libraries clean

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

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W -q docs docs/_build/html

## Speed against climlab, as ratios measured in one run.
bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/model_speed.py

## Speed of training now against that of another commit (make bench-before BEFORE=HEAD~1).
BEFORE ?= ff4f8ba
bench-before: $(VENV)/.installed
	$(BIN)/python benchmarks/before_and_after.py --before $(BEFORE)

## Speed of training against sbx, stable-baselines3 and the published way of working (brings PyTorch).
bench-training:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet -e '.[climlab]' -r benchmarks/requirements.txt
	.venv-peers/bin/python benchmarks/training_speed.py
	.venv-peers/bin/python benchmarks/agents_cost.py

## Other people's learners on our environments: that they run, and their scores (brings PyTorch).
test-libraries: .venv-libraries/.installed
	.venv-libraries/bin/python -m pytest -m slow tests/envs/test_libraries.py

study-libraries: .venv-libraries/.installed
	.venv-libraries/bin/python studies/libraries.py run

clean:
	rm -rf $(VENV) .venv-lowest .venv-peers .venv-proto .venv-libraries docs/_build runs

.venv-libraries/.installed: pyproject.toml studies/libraries.txt
	$(PYTHON) -m venv .venv-libraries
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
