# Two commands set everything up from a fresh clone:
#   make demo   own venv, base install, reads the images in examples/ with the model in the box
#   make test   own venv, everything installed (TeX too), then the whole suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the Python packages and the Debian packages are fetched and unpacked side by side
MAKEFLAGS += --jobs=2
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-fast quality style bench docs map pictures site site-packages dist models check-dist sbom tex clean

demo: $(VENV)/.base
	@sh recipes/demo.sh $(BIN)

test: $(VENV)/.dev tex site-packages
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal

test-fast: $(VENV)/.dev tex site-packages
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

docs: $(VENV)/.dev map
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

map:
	$(PYTHON) -m benchmarks.map

# The page as a folder of files that reads in the browser, for any web server: build/site.
site: site-packages
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m recipes.site build/site

# What it is made with: Pyodide and onnxruntime-web, the versions of the lock file. Node comes with the venv.
site-packages: recipes/site/node_modules/.done
recipes/site/node_modules/.done: recipes/site/package-lock.json $(VENV)/.dev
	cd recipes/site && NODE_USE_SYSTEM_CA=1 PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
	  && touch node_modules/.done || echo "npm could not fetch what the static site is made of: its tests are skipped."

# The sdist and the wheel of what is committed, the same bytes each time.
dist: $(VENV)/.dev
	@$(BIN)/python recipes/dist.py dist

# The wheels of the models that are distributions of their own, in dist/models; they need no network.
models: $(VENV)/.dev
	for project in models/*/; do \
	  $(BIN)/python -m build --no-isolation --wheel --outdir dist/models $$project || exit 1; done

# The wheel in an environment of its own, as a stranger installs it: reads the examples, has no torch.
check-dist: build/installed/.done
	@sh recipes/demo.sh build/installed/bin
	@! build/installed/bin/python -c 'import torch' 2>/dev/null

build/installed/.done: dist
	rm -rf build/installed
	$(PYTHON) -m venv build/installed
	build/installed/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	touch $@

# What a base install consists of, as CycloneDX JSON.
sbom: build/installed/.done
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt cyclonedx-bom
	build/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file dist/sbom.cdx.json build/installed/bin/python

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
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache
