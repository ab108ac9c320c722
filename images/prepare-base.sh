#!/bin/sh
# Runs as root inside the fresh base, whichever way it was made: the user of the sandbox, its mount points, less weight.
set -eu
groupadd --gid 10001 sandbox
useradd --uid 10001 --gid 10001 --home-dir /workspace --no-create-home --shell /bin/bash sandbox
mkdir -p /workspace /run/mcp
# Nobody is root in there: no program needs to become it.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
find /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale -mindepth 1 -delete 2>/dev/null || true
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log /var/log/apt
