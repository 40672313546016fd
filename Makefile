# make demo: install and show the library on a built-in network. make test: install what tests need and run them all.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-$(shell cksum pyproject.toml | cut -d' ' -f1)

.PHONY: demo test stranger check format bench docs pictures clean

demo: $(BIN)/ldfm
	$(BIN)/ldfm demo --output demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

# builds and installs into an environment of its own, with the Python that is given
stranger:
	$(PYTHON) tests/stranger.py

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(STAMP)
	$(BIN)/python docs/render.py

bench: $(STAMP)
	$(BIN)/ldfm bench kernels

# Numba's cache looks at the time stamp of a kernel's own file only, not at those of the kernels it calls
clean:
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/ldfm: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'ldfm needs Python 3.11 or newer; try: make PYTHON=python3.12 ...')"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[plots]"
	touch $(BIN)/ldfm

$(STAMP): $(BIN)/ldfm
	$(BIN)/python -m pip install --quiet --group dev
	rm -f $(VENV)/installed-*
	touch $(STAMP)
