#!/usr/bin/env bash
# Makes this machine ready: finds, installs (saying so first) and starts what is missing, then builds the sandbox image.
# Safe to repeat; what already runs is used as it is.
#
#   setup.sh           a container engine and the sandbox image
#   setup.sh --tests   also what the tests need: redis-server, chromium, gVisor's runsc; with TEST_S3=ceph, an S3 service
#   setup.sh --stop    stops the engine that an earlier run started, and nothing else
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
node=$root/node_modules/.bin/node
# Not $HOME, which may be missing in services and cron jobs.
state=${XDG_STATE_HOME:-~/.local/state}/mcp-orchestrator
# Records the engine that this script started: "PID START-TIME" of a dockerd, or "systemd".
started=$state/engine
engine_log=$state/dockerd.log
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# --- rights -----------------------------------------------------------------------------------------------------------

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_be_root() { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }

# may_install WHAT ADVICE: ends with a message if this script can't install it.
may_install() {
  if ! command -v apt-get >/dev/null; then die "$1 is missing and this machine has no apt: $2"; fi
  if ! may_be_root; then die "$1 is missing and installing it needs root: $2"; fi
}

# --- packages ---------------------------------------------------------------------------------------------------------

apt() {
  # RUNLEVEL=1: without systemd, the packages' own scripts must not start services.
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 RUNLEVEL=1 \
    apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"
}

install_packages() {
  local log
  log=$(mktemp)
  if ! apt install --no-install-recommends "$@" >"$log" 2>&1; then
    say "updating the package lists"
    apt update >"$log" 2>&1 || true
    if ! apt install --no-install-recommends "$@" >"$log" 2>&1; then
      tail -n 5 "$log" >&2
      rm -f "$log"
      return 1
    fi
  fi
  rm -f "$log"
}

# --- the engine -------------------------------------------------------------------------------------------------------

# Prints the reason if the engine does not answer.
engine_problem() { "$node" "$root/scripts/engine-problem.ts"; }

start_time() {
  local line fields
  line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The command's name may contain spaces and parentheses. The 22nd field is the 20th after it.
  read -r -a fields <<<"${line##*) }"
  echo "${fields[19]}"
}

ensure_engine() {
  local problem
  if problem=$(engine_problem); then
    say "the container engine answers"
    return
  fi
  if [ -n "${DOCKER_HOST:-}" ]; then die "DOCKER_HOST is $DOCKER_HOST, but no engine answers there ($problem): start it, or unset DOCKER_HOST."; fi
  case $problem in
    EACCES*) die "the container engine runs, but you may not use it: run 'sudo usermod -aG docker $(id -un)' and log in again." ;;
  esac
  if ! command -v dockerd >/dev/null; then
    may_install 'a container engine' 'install Docker (https://docs.docker.com/engine/install/) and start it.'
    say "installing the container engine (package docker.io), a minute or two"
    install_packages docker.io || die 'docker.io could not be installed: install Docker yourself and run this again.'
    if engine_problem >/dev/null; then return; fi
  fi
  if ! may_be_root; then die "the container engine is not running and starting it needs root: run 'sudo systemctl start docker'."; fi
  start_engine
}

start_engine() {
  mkdir -p "$state"
  if [ -d /run/systemd/system ]; then
    say "starting the container engine (systemctl start docker)"
    as_root systemctl start docker
    echo systemd >"$started"
  else
    say "starting the container engine (dockerd, log in $engine_log), a few seconds"
    forget_dead_engine
    local pid
    # shellcheck disable=SC2016 # expanded by the inner shell
    pid=$(as_root sh -c 'setsid dockerd >"$1" 2>&1 </dev/null & echo $!' sh "$engine_log")
    echo "$pid $(start_time "$pid")" >"$started"
  fi
  wait_for_engine
}

# After a crash, dockerd finds its old pid file and refuses to start if another process has that pid now.
forget_dead_engine() {
  local file=/var/run/docker.pid pid
  pid=$(cat "$file" 2>/dev/null) || return 0
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != dockerd ]; then as_root rm -f "$file"; fi
}

wait_for_engine() {
  local problem=
  for _ in $(seq 120); do
    if problem=$(engine_problem); then return; fi
    case $problem in
      EACCES*) die "the container engine runs now, but you may not use it: run 'sudo usermod -aG docker $(id -un)', log in again, and run this again." ;;
    esac
    sleep 0.5
  done
  tail -n 5 "$engine_log" >&2 2>/dev/null || true
  die "the container engine does not answer ($problem): its log is $engine_log."
}

stop_engine() {
  if [ ! -f "$started" ]; then
    say "nothing to stop: no engine was started by this script"
    return
  fi
  local pid time
  read -r pid time <"$started"
  rm -f "$started"
  if [ "$pid" = systemd ]; then
    say "stopping the container engine (systemctl stop docker)"
    as_root systemctl stop docker.socket docker
    return
  fi
  # The pid may belong to another process by now.
  if [ -z "$time" ] || [ "$(start_time "$pid")" != "$time" ]; then
    say "the engine that this script started has already ended"
    return
  fi
  say "stopping the container engine (dockerd, pid $pid)"
  as_root kill "$pid"
  for _ in $(seq 120); do
    if [ "$(start_time "$pid")" != "$time" ]; then return; fi
    sleep 0.25
  done
  die "dockerd (pid $pid) is still there after 30 s."
}

# --- the image --------------------------------------------------------------------------------------------------------

build_image() { "$node" "$root/scripts/build-image.ts"; }

ensure_image() {
  if [ ! -f "$root/dist/workspace-server.mjs" ]; then "$node" "$root/scripts/build.ts"; fi
  say "the sandbox image (a minute or two the first time)"
  local status=0
  build_image || status=$?
  if [ "$status" = 3 ]; then
    may_install 'mmdebstrap, which builds the image without a registry,' 'install it, or give the engine access to a registry.'
    say "installing mmdebstrap: no image registry answers, so the image is built from Debian packages"
    install_packages mmdebstrap debian-archive-keyring || die 'mmdebstrap could not be installed.'
    build_image || exit 1
  elif [ "$status" != 0 ]; then
    exit 1
  fi
}

# --- what the tests need ----------------------------------------------------------------------------------------------

ensure_program() {
  local package=$1 why=$2 program
  shift 2
  for program in "$@"; do
    if command -v "$program" >/dev/null; then return; fi
  done
  may_install "$package" "install it ($why)."
  say "installing $package ($why), a minute or two"
  install_packages "$package" || die "$package could not be installed: install it yourself ($why)."
}

has_systrap() { command -v runsc >/dev/null && [[ $(runsc flags 2>&1) == *systrap* ]]; }

# The mirror from which this machine gets Debian packages.
debian_source() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" { print $1; exit }'
}

ensure_runsc() {
  if has_systrap; then return; fi
  if ! command -v apt-get >/dev/null || ! may_be_root; then
    say "gVisor's runsc is missing and can't be installed here: the tests that need it will fail"
    return
  fi
  local codename options=() list=/etc/apt/sources.list.d/mcp-orchestrator-backports.list
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  say "installing runsc (gVisor, for the tests)"
  # Bookworm's own runsc is too old for the platform that works everywhere.
  if [ "$codename" = bookworm ]; then
    options=(-t bookworm-backports)
    if ! grep -rqs bookworm-backports /etc/apt/sources.list /etc/apt/sources.list.d; then
      say "adding Debian's bookworm-backports to the package sources ($list)"
      echo "deb $(debian_source) bookworm-backports main" | as_root tee "$list" >/dev/null
      apt update >/dev/null 2>&1 || true
    fi
  fi
  install_packages "${options[@]}" runsc || true
  has_systrap || say "gVisor's runsc can't be had here: the tests that need it will fail"
}

ensure_ceph() {
  local program
  for program in ceph ceph-mon ceph-osd radosgw; do
    if command -v "$program" >/dev/null; then continue; fi
    may_install Ceph 'install ceph-common, ceph-mon, ceph-osd and radosgw, or set TEST_S3_ENDPOINT to a service of yours.'
    say "installing Ceph (an S3 service for the tests; 100 MB to fetch), a minute or two"
    install_packages ceph-common ceph-mon ceph-osd radosgw || die 'Ceph could not be installed: run the tests without TEST_S3=ceph.'
    return
  done
}

# ----------------------------------------------------------------------------------------------------------------------

case ${1:-} in
  '' | --tests) ;;
  --stop)
    stop_engine
    exit 0
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    [ "$1" = --help ] && exit 0
    exit 64
    ;;
esac
[ -x "$node" ] || die "run 'npm ci' first."
ensure_engine
if [ "${1:-}" = --tests ]; then
  ensure_program redis-server 'for the tests' redis-server
  ensure_program chromium 'for the tests' chromium chromium-browser google-chrome
  ensure_runsc
  if [ "${TEST_S3:-}" = ceph ]; then ensure_ceph; fi
fi
ensure_image
say "ready"
