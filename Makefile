# Every target works in a fresh clone: the first one to run makes .venv and installs into it.
# `make help` lists them. ARGS="..." is passed on to pytest, the demo and the benchmarks.

PY := .venv/bin/python
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long verify fix proto proto-check bench chaos evidence nightly

help: ## Print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16

setup: ## Make .venv and install into it, if that is not done yet
	@bash .ci/setup

demo: setup ## Show the whole job on this machine (INPUT=DIR imports a real log, KEEP=1 leaves it running)
	@$(PY) -m quorate demo $(if $(INPUT),--input "$(INPUT)") $(if $(filter 1,$(KEEP)),--keep) $(ARGS)

test: setup ## Run the tests that people wait for, two at a time where they wait (about five minutes)
	@$(PY) -m $(if $(ARGS),pytest $(ARGS),tests.gate)

test-long: setup ## Run what `make test` leaves out: chaos, kills, damages, long simulations (under 25 minutes)
	@$(PY) -m tests.gate test-long

verify: setup proto-check ## Check style, types, imports, stubs and house rules; writes nothing
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -c 'from importlinter.cli import lint_imports_command as run; run(["--no-logo"])'
	@$(PY) -m pytest tests/tidy

fix: setup ## Apply what ruff can mend by itself
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

proto: setup ## Generate quorum/v1 from proto/
	@bash .ci/proto

proto-check: setup ## Check that quorum/v1 is what proto/ generates
	@bash .ci/proto --check

bench: setup ## Measure commit latency, throughput, replay and snapshots
	@$(PY) -m bench $(ARGS)

chaos: setup ## Break a real cluster for MINUTES=30 and check what its clients saw (SEED=N repeats a plan)
	@GRPC_VERBOSITY=NONE $(PY) -m tests.chaos --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

evidence: setup ## Renew docs/evidence.md (LANES="calm chaos" some of it, FULL=1 the long runs)
	@GRPC_VERBOSITY=NONE $(PY) -m tests.evidence run $(LANES) $(if $(filter 1,$(FULL)),--full)

nightly: setup ## Long simulations, interoperability, Spark and thirty minutes of chaos (one to two hours)
	@$(PY) -m pytest --sim-runs $(or $(RUNS),2000)
