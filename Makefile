# make demo | test | extra | check | fix | cost | sim | frames | chaos | agreement | bench | raftos
# Needs Python >= 3.11 and make; everything else comes from PyPI into .venv.
PYTHON ?= python3
BIN := .venv/bin
# Workers, and the hundreds of processes that tests start, do not compile one by one what others have.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q
SHARED := -n 3 --dist loadfile --no-loadscope-reorder
FAST := $(PYTEST) $(SHARED) -m "not extra and not long"
EXTRA := $(PYTEST) $(SHARED) -rs -m "extra and not long"
# Real processes beside each other starve at times: what failed runs once more, alone, and both are printed.
ALONE = { test $$? = 1 && echo "ONCE MORE, ALONE: what failed beside others" && $(1) -n 0 --last-failed --last-failed-no-failures none; }

.PHONY: demo test extra check fix cost sim frames chaos agreement bench raftos clean

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/installed-demo: .venv/created pyproject.toml
	@echo "installing quorumlab into .venv"
	@start=$$(date +%s); $(BIN)/pip install --quiet --disable-pip-version-check -e . \
	  && echo "installed in $$(( $$(date +%s) - start )) s"
	@touch $@

.venv/installed-test: .venv/created pyproject.toml
	@echo "installing quorumlab and what its tests need into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

demo: .venv/installed-demo            ## six processes, two kills, every record accounted for
	@$(BIN)/quorumlab demo

test: .venv/installed-test            ## the whole fast suite: lint, types, units, simulation, real clients
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "$(BIN)/mypy beside the tests"; $(BIN)/mypy & types=$$!; \
	$(FAST) || $(call ALONE,$(FAST)); tests=$$?; \
	wait $$types && exit $$tests

extra: .venv/installed-test           ## what needs jars, kcat, root or much of the machine; every skip is printed
	$(EXTRA) || $(call ALONE,$(EXTRA))

check: .venv/installed-test           ## lint and types only; writes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fix: .venv/installed-test             ## format, and mend what can be mended by machine
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

cost: .venv/installed-test            ## the tests of `test`, to record what each file costs
	$(FAST) --record-cost

# Exit code 5: some runs prove nothing. 4: some are red, as the documents of zk-v1 to zk-v3 admit.
sim: frames                           ## hours: long seed sweeps, every planted bug, the ZooKeeper designs, chaos plans, properties, mutants
	$(BIN)/quorumlab chaos sim --sweep 20000
	$(BIN)/quorumlab chaos sim --cluster --sweep 8000
	$(BIN)/quorumlab chaos sim --catches
	$(BIN)/quorumlab chaos sim --cluster --catches
	for design in zk-v1 zk-v2 zk-v3 zk-redesign zk-kip497; do \
	  $(BIN)/quorumlab chaos sim --design $$design --invariants --sweep 2000 || \
	  case $$?-$$design in 4-zk-v* | 5-*) ;; *) exit 1 ;; esac; done
	for workload in log kafka register cas-register set; do \
	  $(BIN)/quorumlab chaos sim --workload $$workload --seeds 0..399 || test $$? = 5 || exit; done
	$(PYTEST) $(SHARED) --hypothesis-profile=long -m "hypothesis and not extra and not slow"
	$(BIN)/python -m tests.mutants --fresh --page docs/mutants.md

frames: .venv/installed-test          ## 10,000 damaged frames of every API and version: value or refusal, time, memory
	$(BIN)/python -m tests.wire.many_frames

chaos: .venv/installed-test           ## 30 runs of a minute on real processes (goes on where it was stopped), and the museum
	$(BIN)/quorumlab chaos report --out .cache/chaos --page docs/chaos-report.md
	$(PYTEST) -m long
	$(BIN)/quorumlab check .cache/chaos --on spark   # all of them again, in one job

agreement: .venv/installed-test       ## 10,000 small histories of each model, judged every way; Spark too
	$(BIN)/python -m tests.agreement --page docs/checking-agreement.md

bench: .venv/installed-test           ## every benchmark, one JSON line a figure
	$(BIN)/python benchmarks/run.py

raftos: .venv/created                 ## the library for --engine raftos, without the old versions that it pins
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps raftos==0.2.6

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build *.egg-info
