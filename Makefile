# make run    installs what is missing, builds for release, starts the demonstration
# make test   installs what the tests need, builds, runs every test
# make test-browsers  the tests with Chromium and Firefox, which are large; make test skips them where they are missing
# make test-threads   every test under the thread sanitizer, which takes long (TESTS=NAME: those whose name matches)
# make bench  builds for release, measures Pinfold beside the proxies that are installed (BENCH="--rounds 5")
# make bench-methods  the same build: each way of knowing a key beside an unverified tunnel
# make fuzz   feeds each parser with bytes nobody chose, FUZZ_SECONDS (60) each, under the address sanitizer
# make lint   the layout rules of swift format
# make clean  removes what was built

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build test test-browsers test-threads bench bench-methods fuzz lint clean toolchain needs-build needs-run needs-test \
  needs-browsers needs-bench

# Check=package pairs for .ci/need; nothing is installed when every check holds.
# The C++ headers and the linker come with most installations of Swift, not with its bare archive.
BUILD_NEEDS := file:/usr/include/c++=libstdc++-12-dev ld=binutils pkg-config=pkg-config \
  lib:libevent=libevent-dev lib:openssl=libssl-dev lib:libsodium=libsodium-dev lib:libpsl=libpsl-dev \
  lib:libidn2=libidn2-dev lib:zlib=zlib1g-dev lib:libbrotlidec=libbrotli-dev lib:libzstd=libzstd-dev
RUN_NEEDS := openssl=openssl curl=curl
TEST_NEEDS := openssl=openssl curl=curl wget=wget python3=python3 node=nodejs nginx=nginx-light \
  gnutls-serv=gnutls-bin java:17=openjdk-17-jdk-headless promtool=prometheus prlimit=util-linux
BROWSER_NEEDS := $(TEST_NEEDS) chromium=chromium firefox-esr=firefox-esr certutil=libnss3-tools
BENCH_NEEDS := openssl=openssl curl=curl python3=python3 nginx=nginx-light
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= connect-head client-hello server-flight encrypted-flight key-log policy envelope pin-record
# SwiftPM's own option leaves main to libFuzzer; of two sanitizers in two options swiftc takes the last, so both in one.
FUZZ_BUILD := swift build -c release --product pinfold-fuzz --scratch-path .build/fuzz \
  --sanitize fuzzer -Xswiftc -sanitize=fuzzer,address -Xswiftc -DFUZZ
RELEASE := swift build -c release --static-swift-stdlib --product pinfold

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

run: build needs-run
	exec "$$($(RELEASE) --show-bin-path)/pinfold" demo

build: toolchain needs-build
	$(RELEASE)

# Some tests time something: with all tests at once they would time the others.
test: toolchain needs-build needs-test
	swift build --build-tests
	SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8 swift test --skip-build 2>&1 | tee .build/test.log || { echo "== what failed:"; grep '✘' .build/test.log; exit 1; }

test-browsers: toolchain needs-build needs-browsers
	swift build --build-tests
	swift test --skip-build --filter BrowserTests

# Swift's Mutex and one kind of join have to be explained to the sanitizer: see the files that are built here.
test-threads: toolchain needs-build needs-test
	swift build --build-tests --sanitize thread --scratch-path .build/tsan
	clang -shared -fPIC -O1 Tests/ThreadSanitizer/*.c -o .build/tsan/explain.so
	@rm -rf .build/tsan-reports; mkdir -p .build/tsan-reports
	TSAN_OPTIONS="log_path=$(CURDIR)/.build/tsan-reports/race exitcode=0 report_thread_leaks=0" \
	  LD_PRELOAD=$(CURDIR)/.build/tsan/explain.so \
	  swift test --skip-build --sanitize thread --scratch-path .build/tsan $(if $(TESTS),--filter '$(TESTS)') \
	  2>&1 | tee .build/test-threads.log || { failed=1; echo "== what failed:"; grep '✘' .build/test-threads.log || true; }; \
	reports=$$(ls .build/tsan-reports); \
	[ -z "$$reports" ] || { echo "== races:"; cat .build/tsan-reports/*; failed=1; }; \
	exit $${failed:-0}

bench: build needs-bench
	python3 Tests/Performance/peers.py --pinfold "$$($(RELEASE) --show-bin-path)/pinfold" $(BENCH)

# BENCH="--before BINARY" holds TLS 1.2 in band against another build.
bench-methods: build needs-bench
	python3 Tests/Performance/methods.py --pinfold "$$($(RELEASE) --show-bin-path)/pinfold" $(BENCH)

# The runs begin with what is committed and with first inputs made of the captures; what they find new stays below
# .build/fuzz-corpus, an input that breaks something in .build/fuzz-findings. libFuzzer reports the trap, not the runtime.
fuzz: toolchain needs-build
	swift build --product pinfold-fuzz
	.build/debug/pinfold-fuzz seed Tests/Fixtures/Handshakes .build/fuzz-seeds
	$(FUZZ_BUILD)
	@mkdir -p .build/fuzz-findings
	@for target in $(FUZZ_TARGETS); do \
	  echo "== $$target"; mkdir -p .build/fuzz-corpus/$$target; \
	  PINFOLD_FUZZ_TARGET=$$target SWIFT_BACKTRACE=enable=no "$$($(FUZZ_BUILD) --show-bin-path)/pinfold-fuzz" \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=10 -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=.build/fuzz-findings/$$target- \
	    .build/fuzz-corpus/$$target Tests/Fixtures/Fuzz/$$target .build/fuzz-seeds/$$target; \
	done

lint: toolchain
	swift format lint --strict --parallel --recursive Package.swift Sources Tests

clean:
	rm -rf .build

toolchain:
	@version=$$({ swift --version 2>/dev/null || true; } | sed -n 's/.*Swift version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | head -n 1); \
	set -- $$version; \
	if [ $$(( $${1:-0} * 100 + $${2:-0} )) -lt 603 ]; then \
	  echo "Pinfold needs Swift 6.3 or newer in PATH; see https://www.swift.org/install/linux/" >&2; exit 1; \
	fi

needs-build:
	@.ci/need $(BUILD_NEEDS)

needs-run:
	@.ci/need $(RUN_NEEDS)

needs-test:
	@.ci/need $(TEST_NEEDS)

needs-browsers:
	@.ci/need $(BROWSER_NEEDS)

needs-bench:
	@.ci/need $(BENCH_NEEDS)
