/**
 * The shell scripts that start a child in namespaces of its own. `$MOUNT`, `$UNSHARE` and `$ENV` are replaced by absolute paths, because the
 * PATH that a child is given must not choose what runs with privileges. They talk to us on file descriptor 3: `.` when the user
 * namespace is there, `+` when the command has been started, `k` when all files have been covered again.
 */

const COVER = '-t tmpfs -o ro,size=4k,mode=1755 none'

/**
 * Covers the file or folder that each line names (\`+FILE\`: if it is not read-only any more), and answers an empty line, until the stream
 * ends. It runs in the child's mount namespace and may mount there, which the child itself may not. A covered file is a device. A covered
 * folder has the sticky bit and can't be written to, not even by this process, which could write to every folder that a child could give this bit.
 */
export const GUARD = `
while IFS= read -r file <&3; do
  if [ -z "$file" ]; then printf k >&3
  elif [ "\${file#+}" != "$file" ]; then
    if [ -w "\${file#+}" ]; then "$MOUNT" --bind /dev/null "\${file#+}" || exit 125; fi
  else
    # It may be removed and made again at this moment, so that covering it fails.
    tries=0
    while [ -e "$file" ]; do
      if [ -d "$file" ]; then
        if [ -k "$file" ] && [ ! -w "$file" ]; then break; fi
        "$MOUNT" ${COVER} "$file" && break
      elif [ -c "$file" ]; then break
      else "$MOUNT" --bind /dev/null "$file" && break
      fi
      tries=$((tries + 1))
      if [ "$tries" = 50 ]; then exit 125; fi
    done
  fi
done
`

/**
 * Waits until its ids are mapped and starts the guard. Then it goes through the words before \`--\`: a folder \`=FOLDER\` is held in place
 * (a mount point can't be renamed), \`+PATH\` is made read-only, everything else is covered. Then it starts the command.
 */
export const SCRIPT = `
printf . >&3
IFS= read -r settled <&3 || exit 125
guard=$1 cwd=$2
shift 2
if [ -n "$guard" ]; then ( /bin/sh -c "$guard" mcp-orchestrator-guard </dev/null >/dev/null 2>&1 & ); fi
while [ "$1" != -- ]; do
  case $1 in
    =*) if [ -d "\${1#=}" ]; then "$MOUNT" --rbind "\${1#=}" "\${1#=}" || exit 125; fi ;;
    +*)
      path=\${1#+}
      "$MOUNT" --rbind "$path" "$path" || exit 125
      # Flags that the mount had outside can't be taken away here, so they have to be named.
      "$MOUNT" -o remount,bind,ro "$path" 2>/dev/null ||
        "$MOUNT" -o remount,bind,ro,nosuid,nodev "$path" 2>/dev/null ||
        "$MOUNT" -o remount,bind,ro,nosuid,nodev,noatime "$path" 2>/dev/null ||
        "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$path" || exit 125 ;;
    *)
      if [ -d "$1" ]; then "$MOUNT" ${COVER} "$1" || exit 125
      elif [ -e "$1" ] && [ ! -c "$1" ]; then "$MOUNT" --bind /dev/null "$1" || exit 125
      fi ;;
  esac
  shift
done
shift
READ_ONLY
START
`

/** Becomes the command. The working folder is entered again, because the one that it is in lies under a cover. */
export const EXEC = `
exec 3>&-
cd -- "$cwd" 2>/dev/null || cd / || exit 125
unset OLDPWD
exec "$@"
`

/**
 * Starts INIT as the first process of a PID namespace and waits for it, outside of that namespace, where the child can't signal it. It
 * keeps no stream of the child open: when the command closes its output, we must see that. Ends in the same way as the command.
 */
export const SPLIT = `
exec "$UNSHARE" --pid -- /bin/sh -c '
  init=$1 cwd=$2
  shift 2
  exec 4<&0
  /bin/sh -c "$init" mcp-orchestrator-init "$cwd" "$@" <&4 4<&- &
  exec 3>&- 4<&- </dev/null >/dev/null 2>&1
  wait $!
  code=$?
  case $code in 129|13[0-24-79]|14[123]|159) kill "-$((code - 128))" $$ ;; esac
  exit $code
' mcp-orchestrator-child 'INIT' "$cwd" "$@"
`

/**
 * The first process of the PID namespace: when it ends, the kernel ends everything in the namespace. A shell starts what it does not wait
 * for at once with SIGINT and SIGQUIT ignored, which is undone where `env` can do that. Single quotes must not occur in it.
 */
export const INIT = `
cwd=$1
shift
LIMITS
PROC
cd -- "$cwd" 2>/dev/null || cd / || exit 125
unset OLDPWD
exec 4<&0
"$ENV" --default-signal=INT,QUIT true 2>/dev/null && set -- "$ENV" --default-signal=INT,QUIT "$@"
"$@" <&4 4<&- 3>&- &
printf + >&3
exec 3>&- 4<&- </dev/null >/dev/null 2>&1
wait $!
exit $?
`

/**
 * The kernel counts these for the user, in all of its namespaces together. A server that held all of them would keep the isolation of
 * others from working. Browsers need some namespaces for their own sandboxes.
 */
export const LIMITS = `
for limit in /proc/sys/user/max_*_namespaces; do if [ -w "$limit" ]; then echo 128 >"$limit"; fi; done
`

/** Places in /proc where root can change settings of the whole machine. */
const KERNEL_FILES =
  '/proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/fs /proc/acpi /proc/asound /proc/scsi /proc/mtrr /proc/driver /proc/ide /proc/mpt /proc/latency_stats /proc/timer_stats /proc/pressure'

/** Shows the child its own processes only. What READ_ONLY did to the previous /proc has to be done again. */
export const PROC = `
"$MOUNT" -t proc -o nosuid,nodev,noexec proc /proc || exit 125
for path in ${KERNEL_FILES}; do
  if [ -e "$path" ]; then
    "$MOUNT" --bind "$path" "$path" && "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$path" || exit 125
  fi
done
`

/**
 * No device of /dev can be opened except the harmless ones and terminals: a disk has all files on it.
 *
 * As root, a child may still write what the kernel runs as root outside every namespace, such as the handler of core dumps or of an empty
 * control group. A mount below another keeps its own flags, so each is made read-only. Private: what is mounted there later stays outside.
 * In one more user namespace, which it can't make, it could mount the control groups again, writable.
 */
export const READ_ONLY = `
limit=/proc/sys/user/max_user_namespaces
# This shell was started before it was root, so it has no capabilities. A new one has.
if [ -e "$limit" ]; then /bin/sh -c 'echo 0 >"$0"' "$limit" || exit 125; fi
for path in ${KERNEL_FILES} /sys; do
  if [ -e "$path" ]; then
    "$MOUNT" --rbind "$path" "$path" && "$MOUNT" --make-rprivate "$path" || exit 125
    "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$path" || exit 125
  fi
done
while read -r id parent device root at rest; do
  case "$at $rest" in
    *" - autofs "*) ;;
    /sys/*|/proc/sys/*|*" - cgroup "*|*" - cgroup2 "*)
      "$MOUNT" -o remount,bind,ro,nosuid,nodev,noexec "$at" || exit 125 ;;
  esac
done </proc/self/mountinfo
"$MOUNT" --rbind /dev /dev && "$MOUNT" --make-rprivate /dev || exit 125
for node in null zero full random urandom tty; do
  if [ -c "/dev/$node" ]; then "$MOUNT" --bind "/dev/$node" "/dev/$node" || exit 125; fi
done
"$MOUNT" -o remount,bind,nosuid,nodev /dev || exit 125
`
