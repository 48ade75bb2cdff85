# Every target sets up what it needs: on a bare machine `make demo` or `make test` is all there is to type.
.DEFAULT_GOAL := help
.PHONY: help setup demo services services-stop unit test test-full check bench pictures first-hour dist image lock clean

# The tests start hundreds of processes: none of them should compile firnline's modules anew.
unexport PYTHONDONTWRITEBYTECODE

READY  := .venv/.ready
PYTEST := .venv/bin/python -m pytest
SERVERS := .venv/bin/python -m harness.servers
# Once: what lets every JVM of a Spark session start in half the time.
CLASSES := { .venv/bin/python -m harness.servers.spark_classes 2> /dev/null || echo "no archive of Spark's classes: the tests take longer" >&2; }
# The servers that all test processes share; a process that wants another starts it for itself.
SERVED := $(SERVERS) run moto postgres redis rest --
JOBS   ?= 4
# tests/conftest.py puts the long groups first; xdist itself would go by the number of tests.
SPREAD := -n $(JOBS) --dist loadgroup --no-loadscope-reorder
# Tests that need neither a server nor a JVM; harness.pure fails those that do.
UNIT   := tests/unit
# What `make check` runs itself.
DOCS   := --ignore tests/docs
LANE   := $(DOCS) --ignore tests/formal

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with .venv/bin/firnline in it, and see that Java 17+ is there
	@scripts/java.sh > /dev/null

$(READY): pyproject.toml requirements.lock scripts/setup.sh scripts/system.sh
	@scripts/setup.sh
	@touch $@

demo: $(READY) ## build a small lake under .demo; plan, expire, undo, purge and ask it (LAKE=s3: on servers; ENGINE=spark)
	@[ "$(LAKE)" != s3 ] || scripts/services.sh
	@JAVA_HOME=$$(scripts/java.sh $(if $(filter spark,$(ENGINE)),,--find)) && export JAVA_HOME && \
	.venv/bin/python -m demo $(if $(LAKE),--lake $(LAKE)) $(if $(ENGINE),--engine $(ENGINE))

services: $(READY) ## throw-away S3, PostgreSQL, REST and Redis servers on loopback, until Ctrl-C
	@scripts/services.sh --all
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && exec $(SERVERS) up

services-stop: ## stop what `make services` started
	@$(SERVERS) down

unit: $(READY) ## pure tests, without server and JVM: under a minute in one process
	@$(PYTEST) -q -p harness.pure -m "not slow" $(UNIT) $(ARGS)

test: $(READY) ## the tests, about 15 minutes on two cores; more arguments with ARGS="..."
	@scripts/services.sh
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && $(CLASSES) && $(SERVED) $(PYTEST) $(SPREAD) $(LANE) $(ARGS)

test-full: $(READY) ## every test and every formal model at its long count
	@scripts/services.sh --all
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && $(CLASSES) && FIRNLINE_FULL=1 $(SERVED) $(PYTEST) --timeout 10800 $(SPREAD) $(DOCS) $(ARGS)

check: $(READY) ## lint, format, types, import contracts, docs, the formal model
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy --strict
	.venv/bin/lint-imports
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && $(PYTEST) -q $(SPREAD) tests/docs tests/formal

bench: $(READY) ## ratios against other tools; takes a while
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && \
	for each in bench/*.py; do [ -e "$$each" ] || continue; echo "== $$each"; .venv/bin/python "$$each" || exit 1; done

pictures: $(READY) ## pictures of the page, the terminal and a notebook for README and docs, with Debian's chromium
	@.venv/bin/python scripts/terminal_pictures.py
	@.venv/bin/python scripts/pictures.py

first-hour: $(READY) ## record a first hour from the wheel alone, on S3 and PostgreSQL servers, into docs/guides/first-hour.md
	@scripts/services.sh
	@JAVA_HOME=$$(scripts/java.sh) && export JAVA_HOME && $(SERVERS) run moto postgres -- .venv/bin/python scripts/first_hour.py

dist: $(READY) ## build wheel and sdist, and try them in bare environments of every Python that is here
	@scripts/dist.sh

image: ## build the container of deploy/ with podman, buildah or docker, as firnline (more arguments with ARGS="...")
	@scripts/image.sh $(ARGS)

lock: $(READY) ## resolve pyproject.toml to requirements.lock again (ARGS=--upgrade takes the newest)
	@scripts/lock.sh $(ARGS)

clean: ## remove what demo, tests and tools left behind; .venv stays
	rm -rf .demo .services .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf build dist spark-warehouse metastore_db artifacts derby.log
	find src tests demo scripts -name __pycache__ -type d -prune -exec rm -rf {} +
