/** Tests that a hostile server without `sandbox` reaches none of our files, processes and sockets. */

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { type GatewayProcess, processesWith, startGateway } from '../support/gateway-process.ts'
import { outsidePid } from '../support/outside-pid.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

const CHAT = 'what-another-person-wrote-7c1e'
const KEY = 'plain-key-of-another-server-40ab'

/** `inside`: the hostile server works in the folder of `mcp.json`, so that folder can't be covered as a whole. */
async function open(inside: boolean) {
  const victim = child('steady', [], { env: { API_KEY: KEY } })
  const gateway = await startGateway(({ dir }) => ({
    evil: child('shell', [], inside ? { cwd: dir } : {}),
    victim
  }))
  running.push(gateway)
  const { dir, config } = gateway
  const data = join(dir, 'data')
  const run = async (command: string) =>
    textOf(await gateway.call('execute', { server: 'evil', tool: 'run', params: { command } }))
  // Its first call makes the data folder and all that is in it.
  await run('true')
  writeFileSync(join(data, 'chat.txt'), CHAT)
  return { gateway, dir, data, config, run }
}

/** A root of a container or of this machine tries it as another user. */
const USER = process.getuid?.() || 1000
const AS_USER =
  process.getuid?.() === 0 ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--'] : []

/** Not if this checkout is in a folder of root. */
function canBeUser(): boolean {
  const [command = '', ...words] = [...AS_USER, process.execPath, '-e', `fs.readdirSync('${import.meta.dirname}')`]
  return spawnSync(command, words).status === 0
}

/** In the form of `ownName`, for the server that runs the command. */
const OWN_NAME = 'echo "$(readlink /proc/self/ns/pid) $PPID"'

function guardsOf(pid: number): number[] {
  const space = readlinkSync(`/proc/${pid}/ns/mnt`)
  return processesWith('mcp-orchestrator-guard').filter((guard) => {
    try {
      return readlinkSync(`/proc/${guard}/ns/mnt`) === space
    } catch {
      return false // it has ended meanwhile
    }
  })
}

/** Every way to a file that we thought of. */
function waysTo(paths: string[], gatewayPid: number | undefined, scratch: string): string {
  const files = paths.map((path) => `'${path}'`).join(' ')
  return `
    cat ${files}; cd /; cat ${files}
    for pid in ${gatewayPid} $PPID /proc/[0-9]*; do
      for path in ${files}; do cat "/proc/\${pid#/proc/}/root$path"; cat "/proc/\${pid#/proc/}/cwd/\${path##*/}"; done
    done
    for fd in /proc/self/fd/* /proc/$PPID/fd/*; do case $(readlink "$fd") in *data*|*mcp.json*) cat "$fd";; esac; done
    unshare -Urm sh -c "for path in ${files}; do umount \\$path; umount -l \\$(dirname \\$path); cat \\$path; done"
    unshare -Urm sh -c "mount --bind / ${scratch} && for path in ${files}; do cat ${scratch}\\$path; done"
    unshare -Urmpf --mount-proc cat ${files}
    for pid in $(pgrep -s 0 -f '[o]rchestrator-guard'); do nsenter -t $pid -m cat ${files}; nsenter -t $pid -U -m cat ${files}; done
    ln ${files} ${scratch}; ln -s ${files} ${scratch}; cat ${scratch}/*`
}

describe('a hostile server', { timeout: 120_000 }, () => {
  // Checked: if nothing is covered, the chat and the key can be read.
  it.each([
    ['elsewhere', false],
    ['in the folder of mcp.json', true]
  ])('that works %s can neither read nor write the data folder and mcp.json', async (_where, inside) => {
    const { gateway, dir, data, config, run } = await open(inside)
    const before = readFileSync(config, 'utf8')
    const scratch = join(dir, 'scratch')
    mkdirSync(scratch)
    const seen = await run(waysTo([join(data, 'chat.txt'), config], gateway.process.pid, scratch))
    expect(seen).toMatch(/No such file|Permission denied/)
    for (const secret of [CHAT, KEY]) expect(seen).not.toContain(secret)
    await run(`
      cd '${dir}'; ls data; echo '{}' > mcp.json; rm -f mcp.json; mv mcp.json away; echo '{}' > new && mv new mcp.json
      truncate -s 0 mcp.json; rm -rf data/*; touch data/forged; echo '{}' > data/grants.json; mv data other; rm -f new`)
    expect(readFileSync(config, 'utf8')).toBe(before)
    expect(readFileSync(join(data, 'chat.txt'), 'utf8')).toBe(CHAT)
    expect([existsSync(join(data, 'forged')), existsSync(join(dir, 'away'))]).toEqual([false, false])
  })

  // Checked: if it is covered only at the start, the new file can be read.
  it.each([
    ['elsewhere', false],
    ['in the folder of mcp.json', true]
  ])('that works %s can not read an mcp.json that was replaced while it runs', async (_where, inside) => {
    const { dir, config, run } = await open(inside)
    const pid = await run(OWN_NAME)
    for (const round of [1, 2]) {
      const { mcpServers } = JSON.parse(readFileSync(config, 'utf8'))
      const fresh = { ...mcpServers, [`other${round}`]: child('steady', [], { env: { API_KEY: `${KEY}-${round}` } }) }
      writeFileSync(join(dir, 'mcp.json.draft'), JSON.stringify({ mcpServers: fresh }))
      renameSync(join(dir, 'mcp.json.draft'), config)
      await expect.poll(() => run(`cat '${config}'`)).not.toContain(KEY)
    }
    // The same process all the time, which was covered again.
    expect(await run(OWN_NAME)).toBe(pid)
    expect(readFileSync(config, 'utf8')).toContain('other2')
  })

  // Checked: if nobody checks the guard, the server lives on.
  it.each(['SIGKILL', 'SIGSTOP'] as const)('is ended if the guard of mcp.json gets %s', async (signal) => {
    const { run, gateway, config } = await open(true)
    const pid = outsidePid(await run(OWN_NAME))
    for (const guard of guardsOf(pid)) process.kill(guard, signal)
    writeFileSync(`${config}.draft`, readFileSync(config))
    renameSync(`${config}.draft`, config)
    await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 60_000 }).toBe(false)
    expect(gateway.process.exitCode).toBe(null)
  })

  // Checked: without a PID namespace, the server kills the gateway.
  it('can not signal the gateway, a sibling or the guard', async () => {
    const { run, gateway } = await open(true)
    const pid = outsidePid(await run(OWN_NAME))
    const victim = () => gateway.call('execute', { server: 'victim', tool: 'pid', params: {} }).then(textOf)
    const sibling = outsidePid(await victim())
    const guards = guardsOf(pid)
    expect([guards.length, sibling > 0, pid > 0]).toEqual([1, true, true])
    const targets = [gateway.process.pid, sibling, ...guards, pid].join(' ')
    const seen = await run(`
      for signal in USR1 STOP KILL; do for pid in ${targets}; do kill -$signal $pid 2>/dev/null && echo reached $pid; done; done
      for signal in STOP KILL; do kill -$signal 1; done
      ls -d /proc/[0-9]* | wc -l`)
    expect(seen).not.toContain('reached')
    // Itself, the first process of its namespace, and the shell with its pipe.
    expect(Number(seen)).toBeLessThanOrEqual(5)
    expect(outsidePid(await victim())).toBe(sibling)
    expect(outsidePid(await run(OWN_NAME))).toBe(pid)
  })

  // Checked: if they are not held, the folder is gone, and the next start finds the server's files.
  it('can not rename a folder above the data folder or mcp.json', async () => {
    const { dir, data, run } = await open(true)
    const seen = await run(`
      cd /; mv '${dir}' '${dir}-away'; unshare -Urm sh -c "umount -l '${dir}'; mv '${dir}' '${dir}-away'"
      echo beside > '${dir}/beside'; mkdir -p '${dir}/sub' && mv '${dir}/beside' '${dir}/sub/' && ls '${dir}/sub'`)
    expect([existsSync(`${dir}-away`), readFileSync(join(data, 'chat.txt'), 'utf8')]).toEqual([false, CHAT])
    // All else there is as it was.
    expect(seen).toMatch(/^beside$/m)
    // Root can't even make one more namespace.
    expect(seen.match(/busy|unshare failed/g)).toHaveLength(2)
  })

  // Checked: if only the top mount of /sys is read-only, the control groups are listed.
  it.runIf(process.getuid?.() === 0)(
    'that runs as root can not write control groups or kernel settings, or open a disk',
    async () => {
      const { run } = await open(false)
      const disks = 'find /dev -type b -o -path /dev/kmsg -o -path /dev/mem'
      expect(await run(`for disk in $(${disks}); do (: <"$disk") 2>/dev/null && echo "$disk"; done`)).toBe('')
      expect((await run('echo x >/dev/null && head -c 3 /dev/urandom | wc -c')).trim()).toBe('3')
      const mounts = "awk '/ - cgroup2? / { print $5 }' /proc/self/mountinfo"
      expect(await run(`find /sys /proc/sys $(${mounts}) -maxdepth 3 -writable 2>/dev/null | head`)).toBe('')
      expect(await run(`for at in $(${mounts}); do mkdir "$at/made-by-a-server" 2>/dev/null && echo "$at"; done`)).toBe(
        ''
      )
      expect(await run('find /proc/irq /proc/bus /proc/fs -writable 2>/dev/null | head')).toBe('')
      // In a user namespace of its own, it could mount the control groups again, writable.
      expect(await run('unshare --user true 2>/dev/null || echo refused')).toBe('refused\n')
    }
  )

  // Checked: without a limit, it makes all 200, and could go on until no other gateway of this user can isolate its servers.
  it.runIf(canBeUser())('of a normal user can make only some namespaces, but enough for a browser', async () => {
    const gateway = await startGateway(
      ({ dir }) => {
        // The folders of test runs lie in one another.
        for (let at = dirname(dir); basename(at).startsWith('mt-'); at = dirname(at)) chmodSync(at, 0o711)
        chownSync(dir, USER, USER)
        return { evil: child('shell') }
      },
      { under: AS_USER, env: { NODE_COMPILE_CACHE: '' } }
    )
    running.push(gateway)
    const command = `exec 2>/dev/null; made=0
      while [ $made -lt 200 ] && unshare --user sh -c 'sleep 60 >/dev/null &'; do made=$((made + 1)); done; echo $made`
    const made = Number(textOf(await gateway.call('execute', { server: 'evil', tool: 'run', params: { command } })))
    expect(made).toBeGreaterThan(60)
    expect(made).toBeLessThan(130)
  })

  // Checked: if only docker.sock is covered, the other socket is listed.
  it('can not see the socket of a container engine on an instance that others use', async () => {
    const runtime = temporaryFolder()
    for (const name of ['podman', 'containerd-rootless']) {
      mkdirSync(join(runtime, name))
      writeFileSync(join(runtime, name, 'engine.sock'), '')
    }
    const env = { AUTH_TOKEN: 'the token that everyone here has', XDG_RUNTIME_DIR: runtime }
    const gateway = await startGateway({ evil: child('shell') }, { env })
    running.push(gateway)
    const command = `find '${runtime}' /run/docker /run/containerd /run/podman /run/crio /run/buildkit -name '*.sock*'; echo looked`
    const seen = textOf(await gateway.call('execute', { server: 'evil', tool: 'run', params: { command } }))
    expect(seen).toContain('looked')
    expect(seen).not.toMatch(/^\/.*\.sock/m)
  })

  // Checked: if only sockets that exist at its start are covered, the server sees the engine's.
  it('can not see an engine that starts or restarts while the server runs on such an instance', async () => {
    const runtime = temporaryFolder()
    const sockets = [join(runtime, 'named.sock'), join(runtime, 'podman/podman.sock'), join(runtime, 'bus')]
    const env = {
      AUTH_TOKEN: 'the token that everyone here has',
      XDG_RUNTIME_DIR: runtime,
      DOCKER_HOST: `unix://${sockets[0]}`
    }
    writeFileSync(join(runtime, 'of another program'), '')
    const gateway = await startGateway({ evil: child('shell') }, { env })
    running.push(gateway)
    const run = async (command: string) =>
      textOf(await gateway.call('execute', { server: 'evil', tool: 'run', params: { command } }))
    const seen = () => run(`for path in ${sockets.join(' ')}; do [ -S $path ] && echo $path; done; echo looked`)
    const pid = await run(OWN_NAME)
    for (let start = 0; start < 2; start++) {
      mkdirSync(join(runtime, 'podman'))
      const engines = sockets.map((path) => createServer().listen(path))
      await Promise.all(engines.map((engine) => once(engine, 'listening')))
      await expect.poll(seen).toBe('looked\n')
      for (const engine of engines) engine.close()
      rmSync(join(runtime, 'podman'), { recursive: true })
    }
    expect(await run(OWN_NAME)).toBe(pid)
  })

  it('is refused a path in the data folder, with advice where to move it', async () => {
    const dir = temporaryFolder()
    const data = join(dir, 'data')
    mkdirSync(data)
    linkSync(join(import.meta.dirname, '../fixtures/children/steady.ts'), join(data, 'steady.ts'))
    const gateway = await startGateway(
      { odd: { command: process.execPath, args: [join(data, 'steady.ts')] } },
      { env: { DATA_DIR: data } }
    )
    running.push(gateway)
    const answer = textOf(await gateway.call('execute', { server: 'odd', tool: 'echo', params: {} }))
    expect(answer).toMatch(/"odd" can't be started: ".*steady\.ts" is in the data folder .* Move it elsewhere/)
  })
})
