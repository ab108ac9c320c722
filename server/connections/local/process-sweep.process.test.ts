import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { MARK, prepareSweep } from './process-sweep.ts'

const folder = temporaryFolder()
const isRoot = process.getuid?.() === 0
/** Nobody else has this user id, so its limits count only what is started here. */
const USER = 54_321
const AS_USER = [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--']

function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function textOf(pid: number, file: 'cmdline' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

function isAlive(pid: number): boolean {
  const status = textOf(pid, 'status')
  return status !== '' && !/^State:\s+Z/m.test(status)
}

afterEach(() => {
  vi.unstubAllEnvs()
  discard(folder)
})

// Checked: with the person's own PATH, the server's `grep` runs when a child is stopped.
it('runs no program that a server has put into a folder of PATH', async () => {
  for (const name of ['grep', 'sleep'])
    writeFileSync(join(folder, name), `#!/bin/sh\ntouch ${folder}/ran\nexec /bin/${name} "$@"\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`)
  const mark = `test-${process.pid}.`
  const child = spawn('/bin/sh', ['-c', 'trap "" TERM; while :; do read -r _ || exit; done'], {
    env: { [MARK]: mark },
    detached: true, // the sweep ends the whole session of such a process
    stdio: ['pipe', 'ignore', 'ignore']
  })
  const ended = once(child, 'exit')
  await prepareSweep(mark).go()
  await ended
  expect(child.signalCode).toBe('SIGKILL')
  expect(existsSync(join(folder, 'ran'))).toBe(false)
})

// A child that lives for a moment is found, and has ended before the signal reaches it. One that lives longer is found while others begin.
// Checked: if the sweep takes the failure of its last signal for "none is left", the parent of the first survives in nearly every run. If
// it searches as long as there are new ones, it never sends a signal to the second.
it.runIf(process.platform === 'linux').each(['0.02', '0.3'])(
  'ends a stubborn process that starts others all the time, which live for %s seconds',
  async (life) => {
    const mark = `ending-${process.pid}-${life}.`
    const script = `
      $| = 1; $SIG{TERM} = $SIG{CHLD} = 'IGNORE'; print "up\n";
      for (;;) { if (fork == 0) { select(undef, undef, undef, ${life}); exit } select(undef, undef, undef, 0.005) }`
    const child = spawn('perl', ['-e', script], {
      env: { PATH: process.env.PATH, [MARK]: mark },
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore']
    })
    const ended = once(child, 'exit')
    await once(child.stdout, 'data')
    try {
      await prepareSweep(mark).go()
      expect(isAlive(child.pid ?? 0)).toBe(false)
      await ended
    } finally {
      child.kill('SIGKILL')
    }
  }
)

describe.runIf(process.platform === 'linux')('the mark of a child', () => {
  // Checked: if it is an argument of the script, it is found.
  it('is in no command line, which other users can read', async () => {
    const mark = `hidden-${process.pid}.`
    const sweep = prepareSweep(mark)
    await expect.poll(() => processes().some((pid) => textOf(pid, 'cmdline').includes('-sweep'))).toBe(true)
    expect(processes().filter((pid) => textOf(pid, 'cmdline').includes(mark))).toEqual([])
    await sweep.go()
  })

  // Checked: if every session with such a process is ended, the others in it end too.
  it('in a session that someone else opened ends only that process', async () => {
    const mark = `alone-${process.pid}.`
    const script = `sleep 1000 & ${MARK}=${mark} sleep 1000 & wait $!; echo ended; wait`
    const leader = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = once(leader.stdout, 'data')
    await expect.poll(() => processes().filter((pid) => parentOf(pid) === leader.pid).length).toBe(2)
    await prepareSweep(mark).go()
    expect(String(await ended)).toBe('ended\n')
    const others = processes().filter((pid) => parentOf(pid) === leader.pid && isAlive(pid))
    expect([isAlive(leader.pid ?? 0), others.length]).toEqual([true, 1])
    process.kill(-(leader.pid ?? 0), 'SIGKILL')
  })

  // Checked: if the user does not matter, the process is ended.
  it.runIf(isRoot)('does nothing in a process of another user', async () => {
    const mark = `other-${process.pid}.`
    const other = spawn('setpriv', [...AS_USER, 'sleep', '1000'], {
      env: { ...process.env, [MARK]: mark },
      detached: true
    })
    await expect.poll(() => textOf(other.pid ?? 0, 'cmdline')).toMatch(/^sleep/)
    await prepareSweep(mark).go()
    expect(isAlive(other.pid ?? 0)).toBe(true)
    other.kill('SIGKILL')
  })
})

// Checked: if the script ends because it can't start `grep`, the processes of the server are still there.
it.runIf(isRoot)(
  'ends a server that keeps the process limit full, after the gateway was killed',
  async () => {
    // As fast as it can, so that it takes the place of every process that ends.
    const bomb = `
    $| = 1; $SIG{CHLD} = $SIG{TERM} = 'IGNORE';
    for (;;) { my $pid = fork; if (!defined $pid) { print "full\\n" unless $full++ } elsif ($pid == 0) { sleep 1000; exit } }`
    const script = `
    import { ChildProcesses } from '${import.meta.dirname}/child-processes.ts'
    const server = { server: 'bomb', command: 'perl', args: ['-e', ${JSON.stringify(bomb)}], env: {}, cwd: '/' }
    const child = await new ChildProcesses({ PATH: '/usr/bin:/bin' }).start(server)
    child.stdout.once('data', () => console.log('full'))
    child.stderr.pipe(process.stderr)`
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
    const gateway = spawn('setpriv', [...AS_USER, 'prlimit', '--nproc=100:100', ...node], {
      cwd: '/',
      env: { PATH: process.env.PATH },
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit']
    })
    const left = () =>
      processes().filter((pid) => isAlive(pid) && new RegExp(`^Uid:\\s+${USER}\\b`, 'm').test(textOf(pid, 'status')))
    try {
      expect(String((await once(gateway.stdout, 'data'))[0])).toBe('full\n')
      expect(left().length).toBeGreaterThan(50)
      gateway.kill('SIGKILL')
      await expect.poll(() => left().length).toBe(0)
    } finally {
      for (let round = 0; round < 200 && left().length > 0; round++) for (const pid of left()) kill(pid)
    }
  },
  120_000
)

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(textOf(pid, 'status'))?.[1] ?? 0)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
