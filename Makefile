# Spotwright. `make help` lists what there is; every target makes its own virtual environment.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= ../shared/data
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-agents test check bench bench-accuracy bench-planner bench-control bench-daemon bench-agent bench-terraform bench-profile bench-train lab proto catalog traces soak format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/.demo ## plan an example job, compare other fleets, and rent it from a local AWS by Terraform
	@BIN=$(BIN) sh examples/demo.sh

demo-agents: $(VENV)/.dev ## a daemon and three real agents on this machine, with GPUs that are stand-ins
	$(BIN)/python -m examples.live_agents

test: $(VENV)/.dev ## install what the tests need and run all of them
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not soak" tests

soak: $(VENV)/.dev ## the long versions: large markets, many rows, thousands of drawn examples
	$(BIN)/python -m pytest -n 2 --timeout 1800 --hypothesis-profile soak -m "soak or hypothesis" tests

check: $(VENV)/.dev ## lint, types, import rules, generated code, protos
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	BUF=$(BIN)/buf sh protos/breaking.sh
	PYTHON=$(BIN)/python sh protos/generate.sh --check

format: $(VENV)/.dev ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## speed benchmarks, as a table
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-columns=min,median,max,rounds

bench-accuracy: $(VENV)/.dev ## predictions against measured clusters, beside the rivals
	$(BIN)/python -m benchmarks.accuracy --data $(DATA)

bench-planner: $(VENV)/.dev ## the exact search: seconds, proved gaps and rivals, case by case
	$(BIN)/python -m benchmarks.planner

bench-control: $(VENV)/.dev ## steering jobs through measured spot markets, beside rivals; 30 minutes on a quiet machine
	$(BIN)/python -m benchmarks.control --data $(DATA)

bench-agent: $(VENV)/.dev ## the agent: memory, CPU, notices, outages, a full disk; 10 minutes on a quiet machine
	$(BIN)/python -m benchmarks.agent

bench-daemon: $(VENV)/.dev ## the daemon under load: ingest, predictions, plans, restarts; 8 minutes on a quiet machine
	$(BIN)/python -m benchmarks.daemon

bench-train: $(VENV)/.dev ## the trainer: exchanges beside a bare socket, kills, the reporter; 3 minutes on a quiet machine
	$(BIN)/python -m benchmarks.train

bench-terraform: $(VENV)/.dev ## apply beside Terraform by hand, fleets of 8 to 256 nodes, variables of 500 pools; 6 minutes, needs Terraform
	$(BIN)/python -m benchmarks.terraform

bench-profile: $(VENV)/.dev ## the profiler: step time at batches left out, slept stalls found again, duration; 7 minutes on a quiet machine
	$(BIN)/python -m benchmarks.profile

lab: $(VENV)/.dev ## real training on emulated hosts and links, beside predictions; root, about an hour on a quiet machine
	$(BIN)/python -m lab

proto: $(VENV)/.dev ## write the stubs of protos/ to daemon/spotwright/v1
	PYTHON=$(BIN)/python sh protos/generate.sh

catalog: $(VENV)/.dev ## make the bundled catalog anew from the figures in $(DATA)
	$(BIN)/python scripts/build_catalog.py --data $(DATA)

traces: $(VENV)/.dev ## make the bundled availability series anew from the figures in $(DATA)
	$(BIN)/python scripts/build_traces.py --data $(DATA)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis .benchmarks

# Not bin/python: a venv that failed for want of pip has one all the same.
$(VENV)/.made:
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt $(VENV)/.made
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.made
	$(PIP) -e '.[dev]'
	@touch $@
