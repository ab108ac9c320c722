#!/bin/sh
# Builds the probe for both architectures. The binaries are in the repository, so that nobody needs a compiler. Run this again
# after changing kernel-probe.c (Debian: gcc, gcc-aarch64-linux-gnu).
set -eu
cd "$(dirname "$0")"
build() {
  "$1-linux-gnu-gcc" -Os -static -nostdlib -ffreestanding -fno-pie -no-pie -fno-stack-protector -fno-asynchronous-unwind-tables \
    -Wall -Werror -Wl,--build-id=none -Wl,-n -Wl,-z,noexecstack -s -o "$2" kernel-probe.c
}
build x86_64 amd64
build aarch64 arm64
