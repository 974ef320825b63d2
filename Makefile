# Two commands set everything up from a fresh clone:
#   make demo   own venv, base install, reads the images in examples/ with the model in the box
#   make test   own venv, everything installed (TeX too), then the whole suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the Python packages and the Debian packages are fetched and unpacked side by side
MAKEFLAGS += --jobs=2
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-fast quality style bench pictures tex clean

demo: $(VENV)/.base
	@sh recipes/demo.sh $(BIN)

test: $(VENV)/.dev tex
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal

test-fast: $(VENV)/.dev tex
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

quality: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

style: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev tex
	$(BIN)/python -m benchmarks

pictures: $(VENV)/.dev tex
	$(BIN)/python recipes/pictures.py

$(VENV)/.base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[dev]"
	touch $@ $(VENV)/.base

tex:
	@sh recipes/install_packages.sh debian-packages.txt

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
