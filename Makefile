# The commands of the README. CMakePresets.json says how each preset is built.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
DOPPLER = build/release/bin/doppler

.PHONY: release demo test bench fuzz install deps

release: deps
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

# Every method on one layer of LLaMA over four devices; those that search get three seconds each, DOPPLER is shown as
# shipped and after half a minute of training on the graph.
demo: release
	$(DOPPLER) generate llama-layer --parts 4 -o build/llama-layer.json
	$(DOPPLER) compare build/llama-layer.json --machine p100x4 --time 3s --train 30s

# Warnings as errors and every test, then every test again under the address and undefined-behaviour sanitizers.
test: deps
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -j $(JOBS)
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

# One JSON file per benchmark beside its program, with the context that a number needs to mean anything.
bench: release
	set -e; for program in build/release/bin/*_bench; do \
	  $$program --benchmark_out=$$program.json --benchmark_out_format=json; done

fuzz: deps
	tools/fuzz

install: release
	cmake --install build/release --prefix $(PREFIX)

deps:
	tools/install_deps
