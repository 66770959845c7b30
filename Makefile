# Two commands matter to a new user: `make demo` and `make test`. Both set everything up first.
# Every target is safe to repeat.

SHELL := /bin/bash
.DEFAULT_GOAL := build
# Relative paths and one name for the compiler (Python would call it g++), so that the build of the wheel can use the
# compiler cache of build/.
ifeq ($(origin CXX),default)
CXX := c++
endif
export CXX
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros
.PHONY: program build demo demo-search demo-serving test test-ray lint format bench clock-agreement fuzz attack tsan workloads scale sweeps codebases validate matrix wheel docs clean help

help:           ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# The virtual environment is downloaded while the program compiles.
program:        ## packages, program, libraries, .venv with torch and maya
	@tools/setup debian
	@tools/setup venv & filled=$$!; tools/setup program; built=$$?; wait $$filled && exit $$built
	@tools/setup link

build: program  ## the same, and every test
	@tools/setup build

demo: program   ## train a GPT on 8 emulated H100s and predict its step
	.venv/bin/maya run --cluster dgx-h100 --out maya-runs/demo -- \
	  .venv/bin/torchrun --nproc-per-node 8 examples/train_gpt.py

demo-search: build ## search the layouts of a 7 B model on 8 emulated H100s
	PATH=$(CURDIR)/.venv/bin:$$PATH .venv/bin/maya search examples/search/llama-8gpu.toml --out maya-runs/demo-search

# Port 8123, because 8000 may be in use.
demo-serving: program ## vLLM serves an 8 B model (random weights) on an emulated H100; its own benchmark prints predicted times
	@tools/setup serving
	@.venv-serving/bin/python examples/serving/model.py build/serving/llama-3.1-8b llama-3.1-8b
	PATH=$(CURDIR)/.venv-serving/bin:$$PATH .venv/bin/maya run --clock virtual --cluster h100-sxm --out maya-runs/demo-serving -- \
	  python examples/serving/bench.py --url http://127.0.0.1:8123/health \
	    vllm serve build/serving/llama-3.1-8b --load-format dummy --max-model-len 8192 --max-num-seqs 64 --port 8123 \
	    --load vllm bench serve --model build/serving/llama-3.1-8b --port 8123 --dataset-name random --random-input-len 1024 \
	      --random-output-len 128 --num-prompts 64 --request-rate 8 --ignore-eos

test-ray: build ## the search on a Ray cluster of local nodes (installs Ray into .venv-ray)
	@[ -x .venv-ray/bin/python ] || .venv/bin/python -m venv .venv-ray
	@.venv-ray/bin/python -m pip install -q --disable-pip-version-check pytest==9.2.0 -r tools/requirements/ray.txt
	.venv-ray/bin/python -m pytest -q tests/search/test_ray.py

test: build     ## every test
	@tools/setup debian chromium
	@tools/setup workloads
	ctest --test-dir build --output-on-failure --timeout 300 -j 2
	.venv/bin/ruff check --quiet .
	.venv/bin/python -m pytest -q tests
	.venv/bin/python tests/sweeps/run.py operators --gpus h100-sxm
	.venv/bin/python tests/attack/run.py --short
	.venv/bin/python tests/workloads/run.py --set test
	@tools/setup cuda12
	@[ ! -x .venv-cuda12/bin/python ] || { .venv-cuda12/bin/python tests/sweeps/run.py operators --gpus a100 && \
	  .venv-cuda12/bin/python tests/workloads/run.py --set cuda12 --maya .venv/bin/maya; }

workloads: build    ## every workload, the long ones too
	@tools/setup workloads
	.venv/bin/python tests/workloads/run.py --set all

scale: build    ## deep pipelines of 8 to 32 ranks, with all ranks and with five stages
	MAYA_LONG=1 .venv/bin/python -m pytest -q tests/e2e/test_scale.py

sweeps: build   ## all operators of PyTorch's tests, language models of transformers, families of timm
	@tools/setup workloads
	.venv/bin/python tests/sweeps/run.py

# SOURCES has clones of the code bases, BIN is the bin folder of an environment with the packages that they import, and
# NAMES selects some of them.
SOURCES ?= ../src
BIN ?= .venv/bin
codebases: program  ## public training code in SOURCES, unmodified (BIN=… its environment, NAMES="nanogpt dit")
	$(BIN)/python tests/codebases/run.py --sources $(SOURCES) --bin $(BIN) $(NAMES)

# `make matrix torch-2.1.2 torch-2.8.0`: the words after `matrix` are environments and not targets.
ifeq (matrix,$(firstword $(MAKECMDGOALS)))
ENVIRONMENTS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(ENVIRONMENTS)
$(ENVIRONMENTS): ; @:
endif

matrix: build   ## environments of matrix.toml, all or those named after it; writes docs/compatibility.md
	.venv/bin/python tools/matrix $(ENVIRONMENTS)

regret: build ## whether the predicted best layout is also the measured best; SWEEPS=folder of measured tables
	.venv/bin/python validation/regret/predict.py $(SWEEPS) && .venv/bin/python validation/regret/judge.py $(SWEEPS) --detail

validate: build ## compare predictions with published training steps; SET=all for the sweeps
	@tools/setup workloads
	.venv/bin/maya validate --set $(or $(SET),quick)

lint: build     ## formatting, clang-tidy, layering
	@tools/setup debian clang-format clang-tidy
	tools/lint

format:         ## clang-format in place
	git ls-files '*.cpp' '*.h' | xargs clang-format -i

bench: build    ## the figures of bench/, as ratios
	cmake --preset default -DMAYA_BENCH=ON >/dev/null
	cmake --build --preset default
	bench/run

clock-agreement: program ## virtual time: compare step times that scripts measure with the prediction; 1000 random programs
	.venv/bin/python tests/clock/agreement.py
	.venv/bin/maya run --quiet --clock virtual --no-predict --out $$(mktemp -d)/run -- .venv/bin/python tests/clock/random_programs.py 1000

fuzz:           ## a minute of each fuzzer (the tests try a fixed set of damaged inputs)
	@tools/setup debian clang
	cmake --preset fuzz
	cmake --build --preset fuzz --target $(notdir $(basename $(wildcard fuzz/*_fuzzer.cpp))) \
	  $(patsubst fuzz/%_fuzzer.cpp,%_mutations,$(wildcard fuzz/*_fuzzer.cpp))
	@found=0; for f in build/fuzz/bin/*_fuzzer; do [ -x $$f ] || continue; found=1; \
	  mkdir -p build/fuzz/corpus/$$(basename $$f); \
	  $${f%_fuzzer}_mutations --write build/fuzz/corpus/$$(basename $$f); \
	  $$f -max_total_time=$${FUZZ_SECONDS:-60} -timeout=20 -rss_limit_mb=1024 build/fuzz/corpus/$$(basename $$f) \
	    $$(ls -d fuzz/corpus/$$(basename $${f%_fuzzer}) 2>/dev/null) || exit 1; done; \
	  [ $$found = 1 ] || { echo "fuzz: no fuzzer was built" >&2; exit 1; }

attack: build   ## an hour of kills, full disks, damaged recordings, bombs and bad calls; prints its table
	.venv/bin/python tests/attack/run.py

tsan:           ## session and recorder with 16 threads under the thread sanitizer
	cmake --preset tsan >/dev/null
	cmake --build --preset tsan --target session_threads_test trace_test
	build/tsan/bin/session_threads_test
	build/tsan/bin/trace_test

wheel: build    ## dist/maya-*.whl with its manylinux tag
	tools/wheel

docs: build     ## the documentation as a site (build/site); a warning is an error
	@[ -x build/docs-venv/bin/mkdocs ] || { .venv/bin/python -m venv build/docs-venv && \
	  build/docs-venv/bin/pip install -q --disable-pip-version-check -r tools/requirements/docs.txt; }
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict --quiet

clean:          ## remove the build, keep the virtual environments
	rm -rf build dist
