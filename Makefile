# A thin front of CMake: every target sets up what it needs and calls the presets.

PREFIX ?= /usr/local
prefix ?= $(PREFIX)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BENCH_ARGS ?=
PEER_ARGS ?=
COUNT_ARGS ?=
POPULATION_ARGS ?=
PYRAMID_ARGS ?=
export RESULTS ?= build/bench/results

# The makes that CMake starts count their own jobs; ours would only confuse them.
unexport MAKEFLAGS MFLAGS
.NOTPARALLEL:
.PHONY: all run demo test test-quick test-python test-neon test-wasm test-explorer test-machines test-vectors test-avx512 test-large fuzz check-torch-suites check-differential check-wheel \
    check-long check-sweeps check-sanitizers check-valgrind check-static check-coverage check-mutation check-pieces check-dask check-mpi check-reproducible check-pyramid \
    bench bench-peers bench-counts bench-population bench-pyramid explorer pictures python wheel install dist amalgamation test-amalgamation test-dist deb check-abi docs format clean help

# Without tests a build needs no more than cmake and a C compiler: gcc, or what CC names. CMake keeps the compiler of a folder, so another
# one starts it anew.
given = $(filter-out default,$(origin CC))
forget = $(if $(given),grep -qs '^CMAKE_C_COMPILER:.*[=/]$(notdir $(CC))$$' build/CMakeCache.txt || rm -rf build/CMakeCache.txt build/CMakeFiles;)
configure = $(forget) cmake --preset release -DTARN_TESTS=OFF $(if $(given),-DCMAKE_C_COMPILER='$(CC)')
build = cmake --build --preset release --parallel $(JOBS)

all: ## Build the libraries, the examples and the benchmark into build/
	@tools/setup.sh build
	$(configure)
	$(build)

# The picture of the examples through the program: pooled, drawn, explained, checked.
picture = examples/data/tarn.pgm
window = --kernel 3 --stride 2 --pad 1
run: ## Build the program and show what it does, on a picture
	@tools/setup.sh build
	@$(configure) >/dev/null
	$(build) --target tarn_tool tarn_manual
	@mkdir -p build/run
	build/tarn max $(picture) -o build/run/pooled.png $(window)
	build/tarn show max $(picture) -o build/run/show.png $(window)
	build/tarn explain max $(picture) $(window)
	build/tarn check max $(picture) $(window)
	@echo
	@echo "The picture:           $(picture)"
	@echo "Pooled:                build/run/pooled.png"
	@echo "What happened to it:   build/run/show.png"
	@echo "The manual page:       man build/tarn.1"
	@echo "More:                  build/tarn --help, docs/tutorial.md, make demo"
	@if [ -e $(page) ]; then echo "In your browser:       $(page)"; \
	else echo "In your browser:       make explorer"; fi

demo: ## Run the demonstration of the library, in the terminal
	@tools/setup.sh build
	$(configure)
	$(build) --target example_demo
	build/examples/demo $(picture)

page = build/explorer/tarn-explorer.html
explorer: ## Build the explorer, a web page on which pooling explains itself (build/explorer/)
	@tools/setup.sh build explorer
	@tools/explorer.sh build

test: ## Test everything: gcc, clang, sanitizers, documentation, the Python package
	@tools/setup.sh build test docs python explorer node
	@tools/test.sh release explorer docs clang -- asan python tsan

test-python: ## Test the Python package only
	@tools/setup.sh build python
	@tools/test.sh python

test-quick: ## Test the release build only
	@tools/setup.sh build test
	@tools/test.sh release

test-neon: ## Test the NEON kernels, in QEMU
	@tools/setup.sh build neon
	@tools/test.sh neon

test-wasm: ## Test the library compiled to WebAssembly, in Node
	@tools/setup.sh build explorer node
	@tools/test.sh wasm

test-explorer: ## Test the explorer in Chromium; pictures of it go to build/explorer/
	@tools/setup.sh build explorer node browser
	$(configure) >/dev/null
	$(build) --target tarn_static tarn_tool
	@tools/test.sh explorer browser

MACHINES ?=
test-machines: ## Test the bits on other machines, in QEMU, Wine and Node (MACHINES="s390x windows": these only)
	@tools/setup.sh build machines
	@tools/machines.sh $(MACHINES)

test-vectors: ## Test the vector kernels with the address sanitizer, and clang's, with AVX-512 where it runs (slow to build)
	@tools/setup.sh build test
	@tools/test.sh clang-vectors clang-asan-vectors asan-vectors

test-avx512: ## Test the AVX-512 kernels, in Bochs (slow)
	@tools/setup.sh build avx512
	@tools/test.sh avx512

test-large: ## Pool 8 GiB in 256 MiB of memory, beside cp (needs 20 GB of disk; LARGE=folder)
	@tools/setup.sh build test
	$(configure)
	$(build) --target tarn_tool
	TARN_PROGRAM=build/tarn build/venv/bin/python tests/program/large_file.py $(or $(LARGE),build)

FUZZ_SECONDS ?= 60
fuzz: ## Fuzz calls, graphs, problem strings, readers, the command line (FUZZ_SECONDS=60 for each); findings go to build/fuzz/
	@tools/setup.sh build test
	cmake --preset fuzz -DTARN_TESTS=OFF
	cmake --build --preset fuzz --parallel $(JOBS)
	@set -e; for target in pool calls problem graph npy npz png pnm arguments; do \
	    echo "-- fuzz_$$target"; mkdir -p build/fuzz/found/$$target; \
	    words=; [ ! -f fuzz/$$target.dict ] || words=-dict=fuzz/$$target.dict; \
	    build/fuzz/fuzz_$$target $$words -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 -print_final_stats=1 \
	        -artifact_prefix=build/fuzz/found/ build/fuzz/found/$$target fuzz/corpus/$$target; \
	done; echo 'no findings'

check-long: check-sweeps check-sanitizers check-valgrind test-vectors fuzz check-static check-coverage check-mutation check-pieces check-dask check-pyramid check-mpi check-differential check-reproducible ## All the long checks of docs/testing.md, one after the other (hours)

SEEDS ?= 2 3 4 5 6 7 8 9 10 11
check-sweeps: ## Kernels against the specification with other random numbers than make test has (SEEDS="2 3": these)
	@tools/setup.sh build test
	cmake --preset release -DTARN_TESTS=ON
	$(build) --target test_kernels
	@set -e; for seed in $(SEEDS); do echo "-- seed $$seed"; build/tests/test_kernels $$seed; done

check-sanitizers: ## All tests with the undefined-behaviour and memory sanitizers (make test has address and thread)
	@tools/setup.sh build test
	@tools/test.sh ubsan msan

# Floating-point states are not among them: valgrind computes with one of its own. Stacks of threads that live on are no leaks, and
# test_errors counts calls of its own malloc().
memory_tests = test_corners test_graph_corners test_graph_limits test_graph_text test_errors test_threads
check-valgrind: ## Calls, graphs, errors and fuzz corpora of the release build under valgrind
	@tools/setup.sh build test
	cmake --preset release -DTARN_TESTS=ON
	$(build) --target $(memory_tests) replay_pool replay_calls replay_graph replay_problem
	@set -e; for words in $(addprefix tests/,$(memory_tests)) 'tests/replay_graph fuzz/corpus/graph' \
	    'tests/replay_problem fuzz/corpus/problem' 'tests/replay_calls fuzz/corpus/calls' 'tests/replay_pool fuzz/corpus/pool'; do \
	    echo "-- $$words"; valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
	        --soname-synonyms=somalloc=nouserintercepts build/$$words; \
	done

check-static: ## Static analysis: gcc -fanalyzer, clang-tidy, cppcheck
	@tools/setup.sh build test analysis
	tools/analyse.sh

check-coverage: ## Lines, branches and conditions that the tests reach; must not fall below tests/coverage.txt
	@tools/setup.sh build test coverage
	@rm -rf build/coverage/profiles
	@tools/test.sh coverage
	tools/coverage.py

check-reproducible: ## Two builds in different folders must have the same bytes
	@tools/setup.sh build
	tools/reproducible.sh

BOXES ?= 100000
check-pieces: ## Random boxes of random problems: pieces have the bits of one call (BOXES=100000)
	@tools/setup.sh build test
	cmake --preset release -DTARN_TESTS=ON
	$(build) --target test_pieces
	build/tests/test_pieces $(BOXES)

check-mpi: ## A tensor spread over 1, 2, 4 and 7 ranks of MPI (examples/mpi_pool.py)
	@tools/setup.sh build python mpi
	@tools/python.sh mpi

check-dask: ## 200 random problems, 10 random chunkings, 3 schedulers of dask; workers that are killed
	@tools/setup.sh build python
	@tools/python.sh dask

MUTANTS ?= 200
check-mutation: ## Small changes to the library, one at a time, that tests must notice (MUTANTS=200)
	@tools/setup.sh build test
	tools/mutate.py --count $(MUTANTS)

KILLS ?= 20
check-pyramid: ## Kill the drivers and workers of pyramids, again and again (KILLS=20); check metadata against the strict schema
	@tools/setup.sh build python
	@tools/python.sh pyramid $(KILLS)

CASES ?= 100000
check-differential: ## Random calls beside PyTorch's own: values, indices, gradients, errors (CASES=100000; make test does 3000)
	@tools/setup.sh build python
	@tools/python.sh differential $(CASES)

check-wheel: ## Build the wheel; auditwheel must call it manylinux, and abi3audit clean
	@tools/setup.sh build python
	@tools/python.sh check-wheel

check-torch-suites: ## PyTorch's own tests of pooling, with tarn in place of its pools (PYTORCH=checkout of its repository)
	@tools/setup.sh build python
	@tools/python.sh suites $(or $(PYTORCH),$(error PYTORCH=folder is needed: a checkout of pytorch))

bench: ## Measure tarn against the streaming bound (BENCH_ARGS=..., RESULTS=folder)
	@tools/setup.sh build bench
	$(configure)
	$(build) --target tarn_bench
	@tools/bench.sh core $(BENCH_ARGS)

bench-peers: ## Measure tarn beside other libraries (PEER_ARGS=..., RESULTS=folder)
	@tools/setup.sh build bench peers
	$(configure)
	$(build) --target tarn_bench tarn_bench_parts
	@tools/bench.sh peers $(PEER_ARGS)

bench-counts: ## Count the instructions that an output takes (COUNT_ARGS=rows)
	@tools/setup.sh build counts
	$(configure)
	$(build) --target tarn_bench
	@tools/bench.sh counts $(COUNT_ARGS)

bench-population: export SEED := $(SEED)
bench-population: export COUNT := $(COUNT)
bench-population: ## Measure random problems beside PyTorch and oneDNN (SEED=1 COUNT=120 POPULATION_ARGS=--quick)
	@tools/setup.sh build bench population
	$(configure)
	$(build) --target tarn_bench_parts
	@tools/bench.sh population $(POPULATION_ARGS)

bench-pyramid: ## Measure pyramids beside other writers (PYRAMID_ARGS='--mib 1024 --rounds 5')
	@tools/setup.sh build bench pyramid
	$(configure)
	$(build) --target tarn_static
	@tools/bench.sh pyramid $(PYRAMID_ARGS)

pictures: ## Draw the pictures of docs/tutorial.md again, and what its commands print
	@tools/setup.sh build pictures
	$(configure)
	$(build) --target tarn_tool
	tools/tutorial.py --write

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

dist: ## Write a source tarball of what is committed to build/dist/
	@tools/package.sh dist

amalgamation: ## Write the library as one tarn.c and its headers to build/amalgamation/
	@tools/setup.sh amalgamation
	build/venv/bin/python tools/amalgamate.py build/amalgamation

test-amalgamation: ## Compile that file with gcc and clang, whole and in part, and compare its bits with those of the library
	@tools/setup.sh build test
	cmake --preset release -DTARN_TESTS=ON
	$(build) --target hashes
	tools/test_amalgamation.sh full

test-dist: ## Build from the source tarball, and run what was built
	@tools/setup.sh build
	@tools/package.sh test-dist

deb: ## Build Debian packages into build/deb/
	@tools/setup.sh build deb
	@tools/package.sh deb

check-abi: ## Compare the ABI with that of another commit (BASE=tag)
	@tools/setup.sh build abi
	@BASE='$(BASE)' tools/package.sh abi

docs: ## Write the documentation site to build/site/: pages with search, the C interface, the explorer if it is built
	@tools/setup.sh docs
	@tools/site.sh build/site
	@echo 'Open build/site/index.html'

format: ## Format the sources
	@tools/setup.sh format
	find include src tests examples bench tool fuzz python explorer \( -name '*.[ch]' -o -name '*.inc' -o -name '*.mjs' \) -exec clang-format -i {} +

clean: ## Remove build/
	rm -rf build

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' Makefile | expand -t 20
