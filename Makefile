# Every target works in a fresh clone: the first one to run makes .venv and installs into it.
# `make help` lists them. ARGS="..." is passed on to pytest, the demo and the benchmarks.

PY := .venv/bin/python
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help setup wheel client lock release demo test test-long test-compiled compiled-nodes compiled-commands verify fix proto proto-check bench screenshots chaos evidence nightly

# What runs on the compiled form as well, in a run for each of two processors; everything runs on the pure one.
OF_COMPILED := $(addprefix tests/unit/,core quorum log runtime snapshot statemachine controller replica services transport) \
	tests/scenario $(addprefix tests/integration/,test_clean_stop.py test_wiped_disk.py)
COMMANDS_OF_COMPILED := $(addprefix tests/unit/,client cli console server backup recovery verification adoption timetravel) \
	$(addprefix tests/integration/,test_users_against_server.py)
PYTEST_COMPILED = PYTHONSAFEPATH=1 .venv-compiled/bin/python -m pytest -o pythonpath= -p no:cacheprovider \
	--basetemp .venv-compiled/$@ -m "not long and not nightly and not interpreted"

help: ## Print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16

setup: ## Make .venv, if that is not done yet (COMPILED=1 also .venv-compiled, for which a C compiler is needed)
	@bash .ci/setup
	@$(if $(filter 1,$(COMPILED)),bash .ci/compiled setup)

wheel: setup ## Build the compiled wheel for this machine into dist/
	@bash .ci/compiled wheel dist

client: setup ## Build the distribution quorate-client, the client alone, into dist/
	@rm -rf build/client
	@$(PY) deploy/client/build.py build/client
	@$(PY) -m pip wheel --quiet --no-deps -w dist build/client

lock: setup ## Renew deploy/requirements.lock, which pins the dependencies of the image by hash
	@bash .ci/dependencies lock --upgrade

release: setup client ## Build the files of a release into dist/: wheels, sdist, bill of materials, checksums
	@$(PY) -m pip wheel --quiet --no-deps -w dist .
	@$(PY) -c "from setuptools import build_meta; build_meta.build_sdist('dist')" >/dev/null
	@bash .ci/dependencies sbom dist/quorate.cdx.json
	@cp deploy/requirements.lock dist/
	@cd dist && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS && cat SHA256SUMS

demo: setup ## Show the whole job on this machine (INPUT=DIR imports a real log, SECURE=1 secures it, KEEP=1 leaves it running)
	@$(PY) -m quorate demo $(if $(INPUT),--input "$(INPUT)") $(if $(filter 1,$(SECURE)),--secure) $(if $(filter 1,$(KEEP)),--keep) $(ARGS)

test: setup ## Run the tests that people wait for, two at a time where they wait (about five minutes)
	@$(PY) -m $(if $(ARGS),pytest $(ARGS),tests.gate)

test-long: setup ## Run what `make test` leaves out: chaos, kills, damages, long simulations (under 25 minutes)
	@$(PY) -m tests.gate test-long

test-compiled: setup ## Run the tests that drive compiled modules, and some with processes, on the compiled form
	@bash .ci/compiled setup
	@$(if $(ARGS),$(PYTEST_COMPILED) $(ARGS),$(MAKE) --no-print-directory -j2 -O compiled-nodes compiled-commands)

compiled-nodes:
	@$(PYTEST_COMPILED) $(OF_COMPILED)

compiled-commands:
	@$(PYTEST_COMPILED) $(COMMANDS_OF_COMPILED)

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

bench: setup ## Measure latency, throughput, replay and snapshots (ONLY="writes reads" a part of it)
	@bash .ci/compiled setup
	@PYTHONSAFEPATH=1 .venv-compiled/bin/python -m bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

screenshots: setup ## Take the pictures of the console for the documents (needs chromium)
	@$(PY) -m bench.screenshots

chaos: setup ## Break a real cluster for MINUTES=30 and check what its clients saw (SEED=N repeats a plan)
	@GRPC_VERBOSITY=NONE $(PY) -m tests.chaos --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

evidence: setup ## Renew docs/evidence.md (LANES="calm chaos" some of it, FULL=1 the long runs)
	@GRPC_VERBOSITY=NONE $(PY) -m tests.evidence run $(LANES) $(if $(filter 1,$(FULL)),--full)

nightly: setup ## Long simulations, interoperability, Spark and thirty minutes of chaos (one to two hours)
	@$(PY) -m pytest --sim-runs $(or $(RUNS),2000)
