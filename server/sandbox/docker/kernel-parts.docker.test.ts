/** Tries from inside a sandbox to reach parts of the kernel that no namespace covers, and resources that sandboxes share. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLogger } from '../../lib/logger.ts'
import type { WorkspaceConnection } from '../port.ts'
import { run } from '../sandbox-engine.contract.ts'
import { createDockerEngine } from './docker-engine.ts'
import { createTestSandboxes, LIMITS } from './sandboxes.fixture.ts'

const sandboxes = createTestSandboxes()
const { engine, docker } = sandboxes
let containerId: string
let sandbox: WorkspaceConnection

beforeAll(async () => {
  await engine.ensureImage()
  const { id, connection } = await sandboxes.open()
  containerId = id
  sandbox = connection
})
afterAll(() => sandboxes.removeAll())

const python = (source: string) => run(sandbox, `python3 - <<'END'\n${source}\nEND`)

/** Machine code in memory below 4 GB, which makes a 32-bit system call from a 64-bit program. */
const SOCKETCALL = `
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
page = libc.mmap(None, 4096, 7, 0x62, -1, 0)
struct_at = page + 2048
ctypes.memmove(struct_at, struct.pack("<III", 40, 1, 0), 12)
code = bytes.fromhex("53b866000000bb01000000b9") + struct.pack("<I", struct_at) + bytes.fromhex("cd805bc3")
ctypes.memmove(page, code, len(code))
print(ctypes.CFUNCTYPE(ctypes.c_int)(page)())`

describe('from a sandbox nobody reaches', () => {
  // Checked: with the engine's default profile, AF_VSOCK and netlink sockets are opened.
  it.each([
    ['AF_VSOCK', 'socket.socket(40, socket.SOCK_STREAM).bind((0xffffffff, 5555))'],
    ['AF_ALG', 'socket.socket(38, socket.SOCK_SEQPACKET)'],
    ['netlink beyond NETLINK_ROUTE', 'socket.socket(16, socket.SOCK_RAW, 15)'],
    ['AF_BLUETOOTH', 'socket.socket(31, socket.SOCK_RAW, 1)']
  ])('%s', async (_what, line) => {
    const { stdout, stderr } = await python(`import socket\n${line}\nprint("made")`)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/not permitted/)
  })

  // The numbers are those of x86-64.
  // Checked: with the engine's default profile, io_uring and aio answer EFAULT, and `socketcall` opens the socket.
  it.runIf(process.arch === 'x64')('io_uring, aio, or a socket by the 32-bit socketcall', async () => {
    for (const number of [425, 426, 427, 206, 207, 208, 209, 210, 333]) {
      const { stdout } = await python(
        `import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.syscall(${number}, 0, 0, 0, 0, 0, 0), ctypes.get_errno())`
      )
      expect(stdout, String(number)).toBe('-1 1\n')
    }
    // -38: the filter's own answer to it. A kernel without 32-bit calls ends the program.
    const { stdout, signal, exitCode } = await python(SOCKETCALL)
    expect(stdout === '-38\n' || signal !== null || exitCode === 139).toBe(true)
  })

  // Checked: with the engine's default profile, a kernel from 6.6 on keeps the attribute.
  it('attributes of files, which no change set shows; copying files works without them', async () => {
    const { stdout, stderr } = await python(`import os, subprocess
open("marked", "w").close()
for set in (lambda: os.setxattr("marked", "user.note", b"x"), lambda: os.setxattr("marked", "user.note", b"x", follow_symlinks=False)):
  try: print("set", set())
  except OSError as error: print(os.strerror(error.errno))
print(subprocess.run("cp -a marked copied && ls copied && rm marked copied", shell=True, capture_output=True, text=True))`)
    expect(stderr).toBe('')
    expect(stdout.split('\n').slice(0, 2)).toEqual(['Operation not supported', 'Operation not supported'])
    expect(stdout).toContain("returncode=0, stdout='copied\\n', stderr=''")
  })

  it('less than programs need: interfaces, name look-ups, sockets, threads, async work', async () => {
    const work = `import asyncio, multiprocessing.pool, socket, subprocess, tempfile
print(socket.getaddrinfo("127.0.0.1", 80)[0][4], len(socket.if_nameindex()), socket.socketpair()[0].family.name)
async def main():
  server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
  await asyncio.open_connection(*server.sockets[0].getsockname())
  return await (await asyncio.create_subprocess_exec("true")).wait()
print(asyncio.run(main()), multiprocessing.pool.ThreadPool(4).map(abs, [-1]), socket.socket(10).family.name)`
    const { stdout, stderr } = await python(work)
    expect(`${stdout}${stderr}`).toBe("('127.0.0.1', 80) 1 AF_UNIX\n0 [1] AF_INET6\n")
    const node = `const os = require("os"), fs = require("fs"), { Worker } = require("worker_threads")
      new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true }).on("message", async () => {
        await fs.promises.writeFile("x", "y"); fs.watch(".").close()
        console.log(Object.keys(os.networkInterfaces()).join(), fs.readFileSync("x", "utf8"))
      })`
    expect((await run(sandbox, `UV_USE_IO_URING=1 node - <<'END'\n${node}\nEND`)).stdout).toBe('lo y\n')
  })
})

/** Fills the buffers of sockets that nobody reads from, and prints how many bytes they hold. */
const FILL_SOCKETS = `import socket
data, held = b"x" * 60000, []
def larger(one):
  one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
  one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
  one.setblocking(False)
  held.append(one)
def fill(send):
  try:
    for _ in range(500): send()
  except OSError: pass
server = socket.create_server(("127.0.0.1", 0))
for _ in range(8):
  client = socket.create_connection(server.getsockname())
  larger(server.accept()[0])
  larger(client)
  fill(lambda: client.send(data))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
larger(sender)
for _ in range(16):
  reader = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  reader.bind(("127.0.0.1", 0))
  larger(reader)
  fill(lambda: sender.sendto(data, reader.getsockname()))
queues = [line.split()[4] for name in ("tcp", "udp") for line in open("/proc/net/" + name).readlines()[1:]]
print(sum(int(part, 16) for queue in queues for part in queue.split(":")))`

const HAS_CGROUP_V1 = existsSync('/sys/fs/cgroup/memory')

describe('what the host has only once', () => {
  // On cgroup v1, only root can limit these buffers.
  // Checked: without the limit, they hold more than 200 MB.
  it.runIf(!HAS_CGROUP_V1 || process.getuid?.() === 0)('socket buffers count against its limits', async () => {
    const small = createTestSandboxes({ ...LIMITS, memoryMb: 128 })
    const { connection } = await small.open()
    const { stdout } = await run(connection, `python3 - <<'END'\n${FILL_SOCKETS}\nEND`)
    await small.removeAll()
    expect(Number(stdout)).toBeLessThan(128 * 1024 * 1024)
  })

  // Checked: with the engine's own /dev/pts, all 100 are opened.
  // Checked: with the engine's default, the sockets are opened, and 150 MB in their queues count as nothing.
  it('ping sockets can not be opened', async () => {
    const ping = `import socket
for family, protocol in ((socket.AF_INET, 1), (socket.AF_INET6, 58)):
  try: socket.socket(family, socket.SOCK_DGRAM, protocol); print("open")
  except OSError as error: print(error.errno)`
    expect((await python(ping)).stdout).toBe('13\n13\n')
  })

  it('terminals: a sandbox has its own 64, and they work', async () => {
    const hog = `import os
held = []
try:
  while len(held) < 100: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError: pass
print(len(held))`
    expect((await python(hog)).stdout).toBe('64\n')
    expect((await run(sandbox, 'script -qc tty /dev/null')).stdout).toMatch(/^\/dev\/pts\/\d+/)
  })
})

// Checked: if the probe's result is ignored, the sandbox is used.
it('a sandbox whose engine does not apply the seccomp profile is not used', async () => {
  const { Image, HostConfig, Config } = await docker.getContainer(containerId).inspect()
  const owner = { ...Config.Labels, 'mcp-orchestrator.claim': randomUUID() }
  const body = { ...Config, Image, Labels: owner, HostConfig: { ...HostConfig, SecurityOpt: ['no-new-privileges'] } }
  const request = { _query: {}, _body: body, abortSignal: AbortSignal.timeout(30_000) }
  const open = await docker.createContainer(request)
  await open.start()
  const connection = await engine.connect(open.id, 1)
  await expect(engine.verifyLimits(connection)).rejects.toMatchObject({
    code: 'limits_not_enforced',
    message: expect.stringMatching(/list of system calls \(found AF_VSOCK sockets, .*io_uring, .*socketcall/)
  })
  await engine.remove(open.id)
})

describe('a user id', () => {
  it('belongs to one sandbox of the engine, whoever makes them at the same time', async () => {
    const made = await Promise.all(
      Array.from({ length: 4 }, (_, i) => engine.create({ ...sandboxes.owner, instance: `i${i}` }))
    )
    const inspected = await Promise.all([...made, containerId].map((id) => docker.getContainer(id).inspect()))
    expect(new Set(inspected.map(({ Config }) => Config.User)).size).toBe(5)
    await Promise.all(made.map((id) => engine.remove(id)))
  })

  // Checked: with one user id for all, the other sandbox can't create an inotify instance.
  it('does not share the limits that the kernel counts per user', async () => {
    const hog = `python3 -c 'import ctypes, time; libc = ctypes.CDLL(None)
made = 0
while libc.inotify_init() >= 0: made += 1
print(made, flush=True)'`
    const { id, connection } = await sandboxes.open()
    await run(sandbox, `${hog.slice(0, -1)}; time.sleep(600)' > hogged &`)
    await expect
      .poll(async () => Number((await run(sandbox, 'cat hogged')).stdout), { timeout: 30_000 })
      .toBeGreaterThan(50)
    expect(Number((await run(connection, hog)).stdout)).toBeGreaterThan(50)
    await run(sandbox, 'pkill -f inotify_init')
    await engine.remove(id)
  })

  it('that is taken is left alone, and it is reported when none is left', async () => {
    const { id, connection } = await sandboxes.open()
    const uid = Number((await run(connection, 'id -u')).stdout)
    const crowded = createDockerEngine({
      limits: { ...LIMITS, uids: { first: uid, last: uid } },
      logger: silentLogger,
      docker,
      images: { name: async () => Config.Image, exists: async () => true, ensure: async () => Config.Image }
    })
    const { Config } = await docker.getContainer(id).inspect()
    await expect(crowded.create(sandboxes.owner)).rejects.toMatchObject({
      code: 'sandbox_uids_used_up',
      message: expect.stringContaining('SANDBOX_UIDS')
    })
    expect((await run(connection, 'echo here')).stdout).toBe('here\n')
    await engine.remove(id)
    await engine.remove(await crowded.create(sandboxes.owner))
  })

  it('has a name and a home, for whatever asks', async () => {
    const { stdout, stderr } = await run(
      sandbox,
      `node -p 'const { uid, homedir, username } = os.userInfo(); [uid === process.getuid(), homedir, username.replace(/\\d+/, "N")].join()'
       python3 -c 'import getpass, os, pwd; print(getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name, os.path.expanduser("~"))'
       [[ $(whoami) == sandbox-$(id -u) && $(id -gn) == $(whoami) && $(id -G) == "$(id -u) 10001" ]] && echo named; echo ~
       git init -q r && git -C r -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x; git -C r log --format=%s; ls -ld r | cut -d' ' -f3,4`
    )
    const name = `sandbox-${(await run(sandbox, 'id -u')).stdout.trim()}`
    const expected = ['true,/workspace,sandbox-N', 'True /workspace', 'named', '/workspace', 'x', `${name} ${name}`, '']
    expect(`${stdout}${stderr}`.split('\n')).toEqual(expected)
  })
})
