#!/usr/bin/env bash
# with-services.sh COMMAND…: runs a command with everything that the tests need: an engine, the sandbox image, a fresh bundle, its own
# Redis (unless TEST_REDIS_URL is set), and an S3 service (unless TEST_S3_ENDPOINT is set) if Ceph is installed. TEST_S3=ceph installs
# Ceph, TEST_S3=memory does without. Stops what it started, and exits with the command's status.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
node=$root/node_modules/.bin/node
engine_state=${XDG_STATE_HOME:-~/.local/state}/mcp-orchestrator/engine
engine_before=$(cat "$engine_state" 2>/dev/null || true)
dir=$(mktemp -d)
redis_pid=
ceph_pid=
command_pid=

# shellcheck disable=SC2317 # called by the trap
cleanup() {
  trap - EXIT INT TERM
  local pid
  for pid in $redis_pid $ceph_pid; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$dir"
  if [ "$(cat "$engine_state" 2>/dev/null || true)" != "$engine_before" ]; then "$root/scripts/setup.sh" --stop || true; fi
}
# Ends the command first, so that it can clean up while its services are still there. The signal goes to the whole group, because
# npm and the shells below it do not pass it on. TERM in any case: a command in the background of a script is started with INT ignored.
# shellcheck disable=SC2317 # called by the trap
stop() {
  if [ -n "$command_pid" ]; then
    kill -- "-$command_pid" 2>/dev/null || true
    wait "$command_pid" 2>/dev/null || true
    for _ in $(seq 300); do
      kill -0 -- "-$command_pid" 2>/dev/null || break
      sleep 0.1
    done
  fi
  exit "$1"
}
trap cleanup EXIT
trap 'stop 130' INT
trap 'stop 143' TERM

free_port() {
  "$node" -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })'
}

redis_answers() { [ "$(timeout 2 redis-cli -p "$1" ping 2>/dev/null)" = PONG ]; }

# Another process may take the port before Redis does, so try several times.
start_redis() {
  local port
  for _ in 1 2 3; do
    port=$(free_port)
    redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$dir" --daemonize no \
      --logfile "$dir/redis.log" >/dev/null 2>&1 &
    redis_pid=$!
    for _ in $(seq 100); do
      if redis_answers "$port"; then
        export TEST_REDIS_URL=redis://127.0.0.1:$port
        return
      fi
      kill -0 "$redis_pid" 2>/dev/null || break
      sleep 0.1
    done
    kill "$redis_pid" 2>/dev/null || true
    redis_pid=
  done
  tail -n 3 "$dir/redis.log" >&2 || true
  echo 'with-services: redis-server did not start' >&2
  exit 1
}

has_ceph() {
  local program
  for program in ceph ceph-mon ceph-osd radosgw; do command -v "$program" >/dev/null || return 1; done
}

start_ceph() {
  mkdir "$dir/ceph"
  "$node" "$root/scripts/ceph-service.ts" "$dir/ceph" >"$dir/s3-settings" &
  ceph_pid=$!
  until [ -s "$dir/s3-settings" ]; do
    if ! kill -0 "$ceph_pid" 2>/dev/null; then
      echo 'with-services: Ceph did not start. With TEST_S3=memory, the tests do without it.' >&2
      exit 1
    fi
    sleep 0.1
  done
  set -a
  # shellcheck source=/dev/null
  . "$dir/s3-settings"
  set +a
}

# The tests run the bundle, so an old one would let them pass without testing the current code.
"$node" "$root/scripts/build.ts"
"$root/scripts/setup.sh" --tests
if [ -z "${TEST_REDIS_URL:-}" ]; then start_redis; fi
if [ -n "${TEST_S3_ENDPOINT:-}" ]; then
  echo "Tests of the object store also run on $TEST_S3_ENDPOINT." >&2
elif [ "${TEST_S3:-}" != memory ] && has_ceph; then
  start_ceph
  echo "Tests of the object store also run on a real service ($(radosgw --version | cut -d' ' -f1-3))." >&2
else
  echo 'Skipped: tests of the object store on a real S3 service (TEST_S3=ceph installs and starts one; CONTRIBUTING.md has more).' >&2
fi

status=0
setsid "$@" <&0 &
command_pid=$!
wait "$command_pid" || status=$?
exit "$status"
