/** Ways out of a sandbox that a command could try. Each is really tried, and the kernel must refuse it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestSandboxes } from '../../server/sandbox/docker/sandboxes.fixture.ts'
import type { WorkspaceConnection } from '../../server/sandbox/port.ts'
import { run } from '../../server/sandbox/sandbox-engine.contract.ts'

const sandboxes = createTestSandboxes()
let sandbox: WorkspaceConnection

beforeAll(async () => {
  await sandboxes.engine.ensureImage()
  sandbox = (await sandboxes.open()).connection
})
afterAll(() => sandboxes.removeAll())

/** Calls the C library, so that the image needs no program for it. */
const libc = (line: string) =>
  `python3 -c 'import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)
r = ${line}
print("done" if r >= 0 else os.strerror(ctypes.get_errno()))'`

const REFUSED = /not permitted|denied|read-only file system|no such (file|device)/i

async function expectRefused(command: string): Promise<void> {
  const { stdout, stderr } = await run(sandbox, command)
  expect(`${stdout}${stderr}`, command).toMatch(REFUSED)
  expect(stdout, command).not.toContain('done')
}

describe('a sandbox can not get', () => {
  // Checked: as root with `SYS_ADMIN` and without seccomp, the mount succeeds.
  it('a mount', async () => {
    await expectRefused(libc('libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)'))
    await expectRefused(libc('libc.mount(b"/proc", b"/tmp", b"", 4096, None)'))
    await expectRefused(libc('libc.mount(None, b"/proc/sys", None, 32, None)'))
    await expectRefused(libc('libc.umount(b"/proc/kcore")'))
    const { stdout } = await run(sandbox, 'mount 2>/dev/null || cat /proc/self/mounts')
    expect(stdout).not.toMatch(/docker\.sock/)
    expect((await run(sandbox, 'ls /var/run/docker.sock /run/docker.sock')).exitCode).not.toBe(0)
  })

  // Checked: as root with the engine's default capabilities, `mknod` succeeds.
  it('a device', async () => {
    await expectRefused(libc('libc.mknod(b"/tmp/disk", 0o60600, 0x800)'))
    await expectRefused(libc('libc.mknod(b"/workspace/mem", 0o20600, 0x101)'))
    const { stdout } = await run(sandbox, 'find /dev -type b; ls /dev')
    expect(stdout.split('\n').filter((name) => /^(sd|vd|nvme|loop|mem|kmem|kvm|fuse|\/dev)/.test(name))).toEqual([])
  })

  // Checked: as root with `SYS_ADMIN` and without read-only paths, the hostname is changed (only the hostname was tried, because
  // the other writes would change the host).
  it.each([
    '/proc/sys/kernel/core_pattern',
    '/proc/sys/kernel/hostname',
    '/proc/sys/net/ipv4/ip_forward',
    '/proc/sys/vm/overcommit_memory',
    '/proc/sysrq-trigger',
    '/proc/1/oom_score_adj',
    '/sys/kernel/uevent_helper',
    '/sys/fs/cgroup/release_agent',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory.max',
    '/sys/fs/cgroup/pids.max',
    '/sys/fs/cgroup/cgroup.procs'
  ])('a write to %s', async (path) => {
    await expectRefused(`echo -1 > ${path} && echo done`)
  })

  // One of the two versions of cgroups must exist. Otherwise the writes above would be refused only because the files are missing.
  it('a machine without cgroups, where their writes would prove nothing', async () => {
    const { stdout } = await run(sandbox, 'ls /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes')
    expect(stdout).toMatch(/memory/)
  })

  // Checked: without masked paths, `/proc/keys` can be read.
  it('masked information of the kernel', async () => {
    expect((await run(sandbox, 'cat /proc/kcore | head -c 16 | wc -c')).stdout.trim()).toBe('0')
    expect(
      (await run(sandbox, 'cat /proc/keys /proc/timer_list /proc/latency_stats 2>/dev/null | wc -c')).stdout.trim()
    ).toBe('0')
    await expectRefused('dmesg || python3 -c \'open("/dev/kmsg").read(1); print("done")\'')
  })

  // Checked: with a readable copy of Node, the server is stopped and the call never ends.
  it('control of its server by ptrace', async () => {
    await expectRefused(`python3 -c 'import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True)
r = libc.ptrace(16, int(sys.argv[1]), 0, 0)
print("done" if r >= 0 else os.strerror(ctypes.get_errno()))' $PPID`)
    // Nor does it see any process of the host, or of another sandbox.
    expect((await run(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout).not.toMatch(
      /dockerd|containerd|vitest/
    )
  })

  // Checked: under the engine's own init, or if idle runs from a bash that everyone can read, memory and streams are open.
  it('control of the first process of its container, which no change of owner ends', async () => {
    const reach = `for pid in 1 $(cat /proc/1/task/1/children); do
      for part in mem environ fd/0 fd/1; do ( : <"/proc/$pid/$part" ) 2>&1 && echo "done: $pid $part"; done
    done`
    await expectRefused(reach)
    await expectRefused(libc('libc.ptrace(16, 1, 0, 0)'))
    await expectRefused(
      `kill -STOP 1; sleep 0.1; grep -q '^State:.T' /proc/1/status && echo done || echo not permitted`
    )
  })

  // Checked: without seccomp, `unshare` succeeds.
  it('a namespace of its own', async () => {
    for (const flag of ['0x10000000', '0x00020000', '0x40000000', '0x20000000']) {
      await expectRefused(libc(`libc.unshare(${flag})`))
    }
    await expectRefused(libc('libc.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)'))
  })

  // Checked: as root with the engine's default capabilities, the socket is opened.
  it('a raw or a packet socket, or a way out of any kind', async () => {
    for (const kind of ['socket.AF_INET, socket.SOCK_RAW, 1', 'socket.AF_PACKET, socket.SOCK_RAW, 0']) {
      await expectRefused(`python3 -c 'import socket; socket.socket(${kind}); print("done")'`)
    }
    for (const address of ['1.1.1.1', '169.254.169.254', '172.17.0.1']) {
      const { stdout, stderr } = await run(
        sandbox,
        `python3 -c 'import socket; s = socket.socket(); s.settimeout(3); s.connect(("${address}", 80)); print("done")'`
      )
      expect(stderr).toMatch(/unreachable/)
      expect(stdout).toBe('')
    }
  })

  // Checked: without `no-new-privileges`, `NoNewPrivs` is 0.
  it('more rights through a setuid program, even its own', async () => {
    const { stdout } = await run(
      sandbox,
      'cp /usr/bin/id /workspace/id 2>/dev/null || cp "$(command -v id)" /workspace/id; chmod 6755 /workspace/id; /workspace/id -u; grep NoNewPrivs /proc/self/status'
    )
    expect(stdout).toMatch(/20\d{3}[\s\S]*NoNewPrivs:\t1/)
    for (const call of ['setuid(0)', 'setgid(0)', 'setresuid(0, 0, 0)', 'chroot(b"/workspace")']) {
      await expectRefused(libc(`libc.${call}`))
    }
  })

  // The numbers are those of x86-64.
  // Checked: without seccomp, some of these calls are no longer refused.
  it.runIf(process.arch === 'x64')('anything else of the kernel: modules, keys, BPF, clocks, reboot', async () => {
    const calls = [
      'syscall(321, 0, 0, 0)',
      'syscall(175, 0, 0, b"")',
      'syscall(250, 0, 0, 0)',
      'syscall(246, 0, 0, 0, 0)'
    ]
    for (const call of [...calls, 'reboot(0x1234567)', 'stime(0)', 'syscall(298, 0, 0, -1, -1, 0)']) {
      await expectRefused(libc(`libc.${call}`).replace('libc.stime(0)', 'libc.settimeofday(b"\\0" * 16, None)'))
    }
  })
})

describe('a bomb in a sandbox', () => {
  // Checked: with a larger tmpfs, everything is unpacked without an error.
  it('of a small archive that unpacks to gigabytes ends at the workspace’s size', async () => {
    const { id, connection } = await sandboxes.open()
    const bomb = `python3 -c 'import zipfile
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
  for n in range(4): z.writestr(str(n), bytes(80 * 1024 * 1024), compresslevel=1)'; unzip -oq bomb.zip; du -sm . | cut -f1`
    const { stdout, stderr } = await run(connection, bomb, 60_000)
    expect(stderr).toMatch(/no space|write error|disk full/i)
    expect(Number(stdout.trim().split('\n').at(-1))).toBeLessThanOrEqual(256)
    expect((await run(connection, 'rm -f [0-9]; echo again')).stdout).toBe('again\n')
    await sandboxes.engine.remove(id)
  })

  it('of output is cut, and counted', async () => {
    const { stdout } = await run(sandbox, 'yes | head -c 200M')
    expect(stdout.length).toBeLessThan(2_000_000)
    expect((await run(sandbox, 'echo next')).stdout).toBe('next\n')
  })
})
