# A thin front of CMake: every target sets up what it needs and calls the presets.

PREFIX ?= /usr/local
prefix ?= $(PREFIX)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BENCH_ARGS ?=

# The makes that CMake starts count their own jobs; ours would only confuse them.
unexport MAKEFLAGS MFLAGS
.NOTPARALLEL:
.PHONY: all run test test-quick test-python bench python wheel install docs coverage format clean help

# Without tests a build needs no more than cmake and a C compiler.
configure = cmake --preset release -DTARN_TESTS=OFF
build = cmake --build --preset release --parallel $(JOBS)

all: ## Build the libraries, the examples and the benchmark into build/
	@tools/setup.sh build
	$(configure)
	$(build)

run: ## Run the demonstration
	@tools/setup.sh build
	$(configure)
	$(build) --target example_demo
	build/examples/demo examples/data/tarn.pgm

test: ## Test everything: gcc, clang, sanitizers, documentation, the Python package
	@tools/setup.sh build test docs python
	@tools/test.sh release clang asan tsan docs python

test-python: ## Test the Python package only
	@tools/setup.sh build python
	@tools/test.sh python

test-quick: ## Test the release build only
	@tools/setup.sh build test docs
	@tools/test.sh release

bench: ## Run the benchmark (BENCH_ARGS=...)
	@tools/setup.sh build
	$(configure)
	$(build) --target tarn_bench
	build/bench/bench $(BENCH_ARGS)

python: ## Leave build/venv/bin/python able to import tarn
	@tools/setup.sh build python
	@tools/python.sh install

wheel: ## Write a wheel and a source distribution to build/dist/
	@tools/setup.sh build python
	@tools/python.sh wheel

# A directory that is not given goes back to its default, whatever an earlier call said.
directory = $(if $($(1)),-D$(2)=$($(1)),-U$(2))
install: ## Install (DESTDIR, PREFIX or prefix, bindir, libdir, includedir)
	@tools/setup.sh build
	$(configure) -DCMAKE_INSTALL_PREFIX='$(prefix)' \
	    $(call directory,libdir,CMAKE_INSTALL_LIBDIR) \
	    $(call directory,bindir,CMAKE_INSTALL_BINDIR) \
	    $(call directory,includedir,CMAKE_INSTALL_INCLUDEDIR)
	$(build)
	DESTDIR='$(DESTDIR)' cmake --install build

docs: ## Write the documentation to build/docs/
	@tools/setup.sh docs
	mkdir -p build/docs
	doxygen docs/Doxyfile

coverage: ## Test, and write what was executed to build/coverage/
	@tools/setup.sh build test coverage
	@mkdir -p build/coverage && find build/coverage -name '*.gcda' -delete
	@tools/test.sh coverage
	gcovr --root . --filter src/ --object-directory build/coverage build/coverage \
	    --txt build/coverage/summary.txt --html-details build/coverage/index.html --print-summary

format: ## Format the sources
	@tools/setup.sh format
	find include src tests examples bench python -name '*.[ch]' -exec clang-format -i {} +

clean: ## Remove build/
	rm -rf build

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14
