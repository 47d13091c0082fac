# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake. `make` alone prints the targets; each takes its text from the comment
# behind its name.
#
#   CC=clang make test      another compiler (in a fresh build folder)
#   make install PREFIX=/usr/local DESTDIR=/tmp/stage

PREFIX  ?= /usr/local
prefix  ?= $(PREFIX)
BUILD   ?= build
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
CMAKE_ARGS   ?=

CMAKE_BUILD = cmake --build $(1) --parallel $(JOBS)
GNU_DIRS = $(if $(bindir),-DCMAKE_INSTALL_BINDIR=$(bindir)) $(if $(libdir),-DCMAKE_INSTALL_LIBDIR=$(libdir)) \
    $(if $(includedir),-DCMAKE_INSTALL_INCLUDEDIR=$(includedir)) $(if $(mandir),-DCMAKE_INSTALL_MANDIR=$(mandir))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build demo test check test-long bench-cpu install uninstall format lint asan tsan fuzz \
    gpu-test bench clean

help: ## print this list
	@echo 'usage: make TARGET   (first: make demo, then make test)'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
	    printf '  %-11s %s\n' "$$name" "$$text"; done

setup: ## install the Debian packages that building and testing need (only those that are missing)
	@sh tools/setup.sh build test

demo: ## build, then quantise and multiply a real model's layer (installs what is missing)
	@sh tools/setup.sh build
	@cmake --preset default -B $(BUILD) $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,$(BUILD)) --target halfbyte_cli -- --no-print-directory
	@sh tools/demo.sh $(BUILD)

build: ## configure and compile everything into build/
	@cmake --preset default -B $(BUILD) $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,$(BUILD)) -- --no-print-directory

test: setup build ## build and run all tests but the long ones (installs what is missing)
	@sh tools/run_tests.sh $(BUILD) --label-exclude long

check: build ## build and run the fast tests, under two minutes
	@sh tools/run_tests.sh $(BUILD) --label-exclude 'slow|long'

test-long: setup build ## build and run all tests, the long ones included
	@HALFBYTE_TEST_LONG=1 sh tools/run_tests.sh $(BUILD)

bench-cpu: build ## measure the CPU model in multiply-accumulates a second and core
	@$(BUILD)/bench/bench_cpu

install: ## install to PREFIX (default /usr/local), honouring DESTDIR
	@cmake --preset default -B build-install -DHALFBYTE_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=$(prefix) \
	    $(GNU_DIRS) $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,build-install) -- --no-print-directory
	@DESTDIR=$(DESTDIR) cmake --install build-install

uninstall: ## remove what the last make install put there
	@DESTDIR=$(DESTDIR) cmake -D MANIFEST=build-install/install_manifest.txt -P cmake/uninstall.cmake

format: ## format all C sources in place
	@sh tools/setup.sh lint
	@git ls-files -z '*.c' '*.h' ':!*_generated.h' | xargs -0 clang-format -i

lint: ## check format, style, dependency order, names, scripts, and run clang-tidy
	@sh tools/setup.sh build lint
	@sh tools/lint.sh

asan: ## build with the address and undefined-behaviour sanitizers and run the tests
	@sh tools/setup.sh build test
	@cmake --preset asan $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,build-asan) -- --no-print-directory
	@sh tools/run_tests.sh build-asan --label-exclude long

tsan: ## build with the thread sanitizer and run the tests
	@sh tools/setup.sh build test
	@cmake --preset tsan $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,build-tsan) -- --no-print-directory
	@sh tools/run_tests.sh build-tsan --label-exclude long

fuzz: ## run each fuzzer for FUZZ_SECONDS (default 60)
	@sh tools/setup.sh build clang
	@cmake --preset fuzz $(CMAKE_ARGS) --log-level=WARNING
	@$(call CMAKE_BUILD,build-fuzz) -- --no-print-directory
	@sh tools/run_fuzzers.sh build-fuzz $(FUZZ_SECONDS)

gpu-test: ## compare the GPU kernels with the CPU model (needs a Hopper GPU)
	@[ -e /dev/nvidiactl ] || { echo 'gpu-test: no NVIDIA GPU on this machine; nothing ran.' >&2; exit 1; }
	@$(MAKE) --no-print-directory build
	@$(BUILD)/tests/gpu/gpu_test --commit "$$(git rev-parse --short HEAD 2>/dev/null)" --json $(BUILD)/gpu-test.jsonl

bench: ## measure the GPU kernels (needs a Hopper GPU and torch)
	@[ -e /dev/nvidiactl ] || { echo 'bench: no NVIDIA GPU on this machine; nothing ran.' >&2; exit 1; }
	@$(MAKE) --no-print-directory build
	@python3 bench/bench_gemm.py --library $(BUILD)/src/libhalfbyte.so \
	    --shapes bench/shapes/*.csv --json $(BUILD)/bench-gemm.jsonl

clean: ## remove all build folders
	rm -rf build build-*
