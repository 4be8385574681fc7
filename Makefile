# Everything a fresh machine needs is python3.11+ and make. CI runs exactly these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVING := $(VENV)/.serving
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 3

.PHONY: setup serve test check bench format docs conformance fuzz kills soak failover storm

setup: $(STAMP)

# What serving needs, and nothing else. The model and its libraries, without what these need only to
# download models, come at the same time; modules are compiled when they are first used. pip would
# call the libraries' other needs missing.
$(SERVING): pyproject.toml constraints.txt models/minilm/build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Zibaldone needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo "Setting up in $(VENV), which takes about half a minute the first time."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@( $(PIP) --no-warn-conflicts --no-compile --no-deps onnxruntime tokenizers && $(BIN)/python models/minilm/build.py --install \
	    || echo "The built-in model cannot be had: keyword search only." ) & \
	  $(PIP) --no-warn-conflicts --no-compile --editable '.[ingest,pull]'; code=$$?; wait; exit $$code
	@touch $(SERVING)

# The same environment with what the tests need.
$(STAMP): $(SERVING)
	@echo "Adding what the tests need, which takes about a minute."
	@$(PIP) --no-warn-conflicts --editable '.[consult,dev,ingest,oauth,postgres,pull,qdrant,remote]'
	@$(BIN)/python -m compileall -qq $(VENV)/lib || true
	@touch $(STAMP)

serve: $(SERVING)
	$(BIN)/zibaldone serve

test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --acceptance

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m docs.generate --check

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup
	$(BIN)/python -m docs.generate

bench: setup
	$(BIN)/python -m benchmarks.run

conformance: setup
	$(BIN)/python -m tests.clients.conformance

# For a night. What each does, and the variables that make it shorter, is told in its module.
# FUZZ_CASES, FUZZ_SOCKET_CASES, FUZZ_SEED, FUZZ_SECONDS: tests/nightly/fuzz.py
fuzz: setup
	$(BIN)/python -m tests.nightly.fuzz
	FUZZ_OPENAPI_EXAMPLES=$${FUZZ_OPENAPI_EXAMPLES:-200} $(BIN)/python -m pytest tests/nightly/test_openapi.py

# KILLS, KILLS_SECONDS, KILLS_STATE: tests/nightly/kills.py
kills: setup
	$(BIN)/python -m tests.nightly.kills

# SOAK_SECONDS, SOAK_HOSTILE: tests/nightly/test_soak.py
soak: setup
	SOAK_SECONDS=$${SOAK_SECONDS:-3600} $(BIN)/python -m pytest tests/nightly/test_soak.py -s

# FAILOVER_ROUNDS, FAILOVER_SECONDS: tests/several/failover.py
failover: setup
	$(BIN)/python -m tests.several.failover

# STORM_SECONDS, STORM_SEED: tests/several/storm.py
storm: setup
	$(BIN)/python -m tests.several.storm
