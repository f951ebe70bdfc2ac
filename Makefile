# Everything happens in ./.venv and ./build; nothing here needs root.
#
#   make demo         see it work on real input
#   make test         run all tests
#   make dev          an editable install, for working on chapoly
#   make lint         ruff, mypy --strict, stubtest
#   make test-builds  the forms in which chapoly is built, and what each build does when something is missing
#   make big          messages over 4 GiB; takes 6 GiB of memory and a few minutes
#   make sanitize     the tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make assure       proofs, constant-time and fuzz: each plants faults that it has to report
#   make proofs       Poly1305's arithmetic, as the source has it
#   make constant-time  what depends on secrets, by valgrind, MemorySanitizer and in machine code
#   make fuzz         calls made up by libFuzzer, asked of every kernel, for two minutes
#   make bench-peers  chapoly beside the other libraries, written to docs/benchmarks; PEERS=--quick, PEERS=--help
#   make dist         the sdist and the wheels, in dist: built twice, checked, run; PYTHON must be CPython 3.11
#   make docs         the documentation, in build/docs, and its examples beside other libraries
#   make clean        remove .venv and build

PYTHON ?= python3
python := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
pip := $(python) -m pip --disable-pip-version-check --quiet
sources := pyproject.toml meson.build meson.options $(shell find src -type f -not -name '*.pyc')

.PHONY: demo test test-c test-builds big dev lint sanitize assure proofs constant-time fuzz bench-peers dist docs clean prerequisites

demo: .venv/installed
	$(pip) install --group demo
	$(python) scripts/demo.py

test: .venv/installed test-c
	$(python) -m pytest -n auto $(PYTEST_ARGS)

# The C tests need no Python; they run on every kernel of this CPU.
test-c: .venv/tools
	[ -f build/c-tests/build.ninja ] || $(python) -m mesonbuild.mesonmain setup build/c-tests -Dnative=enabled -Dnative_tests=true
	$(python) -m mesonbuild.mesonmain test -C build/c-tests --print-errorlogs

dev: .venv/tools
	rm -f .venv/installed
	$(pip) install --no-build-isolation --editable '.[cli]' -Csetup-args=-Dnative=enabled

lint: .venv/installed
	$(pip) install --group lint
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	! grep --recursive --line-number --include='*.[ch]' '.\{121\}' src tests/native bench
	$(python) -m mypy
	cd .venv && bin/python -m mypy.stubtest chapoly._native

test-builds: .venv/tools
	$(python) -m pytest -q -n auto tests/builds

big: .venv/installed
	$(python) -m pytest -q tests/big

sanitize: .venv/installed
	scripts/sanitize

assure: proofs constant-time fuzz

constant-time:
	$(PYTHON) tests/constant_time/check.py --short --method memcheck --method msan --method barrier --method division

fuzz: .venv/tools
	scripts/fuzz

proofs: .venv/tools
	$(pip) install --group proofs
	$(python) proofs/check.py

# The newest of each library, chapoly built from this source by gcc, and beside it the abi3 wheel: one built here,
# or WHEEL=FILE.
bench-peers: export PATH := $(CURDIR)/build/peers/bin:$(PATH)
bench-peers: export CC := gcc
bench-peers: pip := build/peers/bin/python -m pip --disable-pip-version-check --quiet
bench-peers: abi3 := build/peers/abi3
bench-peers: prerequisites
	[ -x build/peers/bin/python ] || $(PYTHON) -m venv build/peers
	$(pip) install --upgrade pip
	$(pip) install --upgrade --group build --group peers
	$(pip) install --no-build-isolation '.[cli]' -Csetup-args=-Dnative=enabled
	rm -rf $(abi3)
	[ -n "$(WHEEL)" ] || $(pip) wheel --no-build-isolation --no-deps --wheel-dir $(abi3) . \
		-Csetup-args=-Dnative=enabled -Csetup-args=-Dpython.allow_limited_api=true
	build/peers/bin/python bench/peers --wheel $(or $(WHEEL),$(abi3)/*.whl) $(PEERS)

# Tools of exactly the versions in pyproject.toml, in an environment of their own.
dist: pip := build/dist-tools/bin/python -m pip --disable-pip-version-check --quiet
dist: prerequisites
	[ -x build/dist-tools/bin/python ] || $(PYTHON) -m venv build/dist-tools
	$(pip) install --upgrade pip
	$(pip) install --group dist
	build/dist-tools/bin/python scripts/dist.py

# Built without the network; any warning is an error.
docs: .venv/installed
	$(pip) install --group docs
	$(python) -m pytest -q tests/migrating
	$(python) -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs build/docs
	@echo build/docs/index.html

clean:
	rm -rf .venv build

# An install like a user's, built again whenever a source has changed.
.venv/installed: .venv/tools $(sources)
	$(pip) install --no-build-isolation '.[cli]' -Csetup-args=-Dnative=enabled
	touch $@

.venv/tools: pyproject.toml | prerequisites
	[ -x $(python) ] || $(PYTHON) -m venv .venv
	$(pip) install --upgrade pip
	$(pip) install --group test --group build
	touch $@

prerequisites:
	@{ $(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11); import ensurepip, venv' && \
	$(PYTHON) -c 'import os, sysconfig; assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' && \
	command -v gcc; } >/dev/null 2>&1 || \
	{ echo 'chapoly needs CPython 3.11 or later, its headers, and a C compiler; on Debian and Ubuntu:'; \
	  echo 'apt install python3-venv python3-dev gcc make'; exit 1; } >&2
