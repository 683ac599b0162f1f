# Tidings. `make help` lists what there is. Everything runs from .venv, which is made when it is missing or out of date.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DATA ?= ./tidings-data

.DEFAULT_GOAL := help
.PHONY: help setup java browser foreign run test check lint bench bench-peers faults soak format clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | while IFS='|' read -r target text; do \
	  printf '  make %-11s %s\n' "$$target" "$$text"; done

$(STAMP): requirements.lock pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV)
	@touch $@

setup: $(STAMP) ## Make .venv with everything in requirements.lock

java: $(STAMP) ## Find a Java for Spark, or install one
	@scripts/java $(BIN)/python

foreign: $(STAMP) ## Make environments for clients that others wrote, which tests read our feeds with
	@scripts/foreign $(BIN)/python

browser: ## Find a Chromium for the tests of pages, or install one
	@scripts/browser

run: $(STAMP) java ## Start a hub with a small demo to watch (data in ./tidings-data, or DATA=…)
	@$(BIN)/tidings demo --data $(DATA)

lint: $(STAMP)
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

check: lint ## Lint, types, and the quick tests: no Spark, no hub, no waiting (under two minutes)
	@$(BIN)/pytest -m "not spark and not hub and not slow"

test: $(STAMP) java browser foreign lint ## Everything: lint, types, all tests
	@$(BIN)/pytest

bench: $(STAMP) java ## Measure speed; one table
	@$(BIN)/python -m bench

bench-peers: $(STAMP) ## Measure routing beside event-ruler (needs Maven and a JDK)
	@$(BIN)/python -m bench.peers

faults: $(STAMP) java ## Kill, stop, starve and unplug a publishing hub, and count what was lost (ROUNDS="kills power", SEED=7)
	@$(BIN)/python -m tests.faults $(ROUNDS) --kills 50 --events 100000 $(if $(SEED),--seed $(SEED))

soak: $(STAMP) java ## Half an hour with good and bad endpoints: does it stay flat? (report in soak-report/)
	@$(BIN)/python -m tests.soak

format: $(STAMP) ## Format and tidy the code
	@$(BIN)/ruff check --fix src tests bench
	@$(BIN)/ruff format src tests bench

clean: ## Remove .venv and caches; data stays
	@rm -rf $(VENV) .foreign .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .import_linter_cache src/*.egg-info build dist
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
