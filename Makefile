# The commands of the README. CMakePresets.json says how each preset is built.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
DOPPLER = build/release/bin/doppler

.PHONY: release command demo test sanitize lint bench fuzz install

# The command, and the modules that it opens on demand where their libraries are there.
release:
	tools/install_deps command
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

command:
	tools/install_deps command
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target doppler

# Every method on one layer of LLaMA over four devices; those that search get three seconds each, DOPPLER is shown as
# shipped and after half a minute of training on the graph. build/demo.html is the same to look at.
demo: command
	$(DOPPLER) generate llama-layer --parts 4 -o build/llama-layer.json
	$(DOPPLER) compare build/llama-layer.json --machine p100x4 --time 3s --train 30s --html build/demo.html

# Warnings as errors, every test, and the benchmarks built.
test:
	tools/install_deps test bench
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -j $(JOBS)

# Every test under the address and undefined-behaviour sanitizers, then those with threads under the thread sanitizer.
sanitize:
	tools/install_deps test
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	ctest --preset tsan -j $(JOBS)

# Layout of every source, then clang-tidy on a few files of each kind of code.
lint:
	tools/install_deps test lint
	tools/lint

# One JSON file per benchmark beside its program, with the context that a number needs to mean anything.
bench:
	tools/install_deps bench
	cmake --preset release -DDOPPLER_BENCH=ON
	cmake --build --preset release -j $(JOBS)
	set -e; for program in build/release/bin/*_bench; do \
	  $$program --benchmark_out=$$program.json --benchmark_out_format=json; done

fuzz:
	tools/install_deps test
	tools/fuzz

install: release
	cmake --install build/release --prefix $(PREFIX)
