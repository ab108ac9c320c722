import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../tests/support/temporary-folder.ts'
import { readLimits } from './limits.ts'

let base: string
const put = (files: Record<string, string>) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(base, name)), { recursive: true })
    writeFileSync(join(base, name), text)
  }
}

beforeEach(() => {
  base = temporaryFolder()
})
afterEach(() => rmSync(base, { recursive: true }))

it('reads cgroup v2', () => {
  put({
    'sys/fs/cgroup/memory.max': '536870912\n',
    'sys/fs/cgroup/pids.max': '128\n',
    'sys/fs/cgroup/cpu.max': '50000 100000\n',
    'sys/class/net/lo': '',
    'proc/self/limits':
      'Max stack size   8388608   unlimited   bytes\nMax processes             100                  200                  processes\n',
    'proc/self/status': 'CapPrm:\t0000000000000000\nCapEff:\t0\nCapBnd:\t0000\nNoNewPrivs:\t1\nSeccomp:\t2\n',
    'proc/self/mounts': 'overlay / overlay rw,x 0 0\noverlay / overlay ro,relatime 0 0\ntmpfs /workspace tmpfs rw 0 0\n'
  })
  expect(readLimits(base, base)).toMatchObject({
    memoryBytes: 536870912,
    pids: 128,
    processLimit: 200,
    cpus: 0.5,
    interfaces: ['lo'],
    capabilities: '0',
    noNewPrivileges: true,
    seccomp: 2,
    rootWritable: false
  })
})

it('reads cgroup v1', () => {
  put({
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '536870912\n',
    'sys/fs/cgroup/pids/pids.max': '128\n',
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '50000\n',
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
    'proc/self/status': 'CapEff:\t0000000000000400\nCapBnd:\t00000000a80425fb\n',
    'proc/self/mounts': 'overlay / overlay rw,errors=remount-ro 0 0\n'
  })
  expect(readLimits(base, base)).toMatchObject({
    memoryBytes: 536870912,
    pids: 128,
    cpus: 0.5,
    capabilities: 'a80425fb',
    noNewPrivileges: null,
    seccomp: null,
    rootWritable: true
  })
})

it.each([
  ['v2', { 'memory.max': 'max', 'pids.max': 'max', 'cpu.max': 'max 100000' }],
  [
    'v1',
    {
      'memory/memory.limit_in_bytes': '9223372036854771712',
      'pids/pids.max': 'max',
      'cpu/cpu.cfs_quota_us': '-1',
      'cpu/cpu.cfs_period_us': '100000'
    }
  ],
  ['nothing', {}]
])('says null for no limit: %s', (_, files) => {
  put(Object.fromEntries(Object.entries(files).map(([name, text]) => [`sys/fs/cgroup/${name}`, text])))
  expect(readLimits(base, base)).toMatchObject({ memoryBytes: null, pids: null, processLimit: null, cpus: null })
})
