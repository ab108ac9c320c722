import { describe, expect, it } from 'vitest'
import type { LimitsResult } from '../../../workspace-server/protocol.ts'
import type { SandboxLimits } from '../port.ts'
import { checkLimits } from './limits-check.ts'

const MB = 1024 * 1024
const asked: SandboxLimits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }
const seen: LimitsResult = {
  uid: 20_000,
  memoryBytes: 512 * MB,
  pids: 128,
  cpus: 0.5,
  interfaces: ['lo'],
  capabilities: '0',
  noNewPrivileges: true,
  seccomp: 2,
  openKernelParts: [],
  rootWritable: false,
  workspaceBytes: 256 * MB,
  workspaceInodes: 65_536
}

describe('checkLimits', () => {
  it('accepts what was asked for, and the tunnel devices that some kernels put everywhere', () => {
    expect(() => checkLimits(asked, seen)).not.toThrow()
    expect(() => checkLimits(asked, { ...seen, interfaces: ['lo', 'tunl0', 'sit0'] })).not.toThrow()
    expect(() => checkLimits({ ...asked, network: 'inner' }, { ...seen, interfaces: ['lo', 'eth0'] })).not.toThrow()
  })

  it.each<[string, Partial<LimitsResult>]>([
    ['root', { uid: 0 }],
    ['memory', { memoryBytes: 513 * MB }],
    ['memory', { memoryBytes: null }],
    ['memory', { memoryBytes: -1 }],
    ['memory', { memoryBytes: 0 }],
    ['processes', { pids: 129 }],
    ['processes', { pids: null }],
    ['CPUs', { cpus: 2 }],
    ['CPUs', { cpus: null }],
    ['capabilities', { capabilities: 'a80425fb' }],
    ['capabilities', { capabilities: '' }],
    ['eth0', { interfaces: ['lo', 'eth0'] }],
    ['new privileges', { noNewPrivileges: false }],
    ['io_uring', { openKernelParts: ['io_uring'] }],
    ['system calls', { seccomp: 0 }],
    ['system calls', { seccomp: null }],
    ['read-only', { rootWritable: true }],
    ['workspace', { workspaceBytes: 300 * MB }]
  ])('names %s when it is off: %j', (word, change) => {
    expect(() => checkLimits(asked, { ...seen, ...change })).toThrow(
      expect.objectContaining({ code: 'limits_not_enforced', message: expect.stringContaining(word) })
    )
  })

  it('takes the word of the engine where the kernel inside shows nothing, and only there', () => {
    const blind = { ...seen, memoryBytes: null, pids: null, cpus: null }
    const engine = { memoryBytes: 512 * MB, pids: 128, cpus: 0.5 }
    expect(() => checkLimits(asked, blind, { engine })).not.toThrow()
    // gVisor's own kernel answers the probe.
    expect(() => checkLimits(asked, { ...blind, seccomp: 0, openKernelParts: ['io_uring'] }, { engine })).not.toThrow()
    expect(() => checkLimits(asked, blind, { engine: { ...engine, memoryBytes: 0 } })).toThrow(/memory/)
    expect(() => checkLimits(asked, blind, { engine: { ...engine, cpus: 0 } })).toThrow(/CPUs/)
    expect(() => checkLimits(asked, { ...blind, memoryBytes: 1024 * MB }, { engine })).toThrow(/memory/)
    expect(() => checkLimits(asked, { ...blind, uid: 0 }, { engine })).toThrow(/root/)
  })

  it('takes the lower one of two limits for processes', () => {
    expect(() => checkLimits(asked, { ...seen, pids: null, processLimit: 128 })).not.toThrow()
    expect(() => checkLimits(asked, { ...seen, pids: 4096, processLimit: 128 })).not.toThrow()
    expect(() => checkLimits(asked, { ...seen, pids: 128, processLimit: 30_000 })).not.toThrow()
    expect(() => checkLimits(asked, { ...seen, pids: null, processLimit: 129 })).toThrow(/processes/)
  })

  it('leaves out only what its terms name', () => {
    const pod = { ...seen, interfaces: ['eth0', 'lo'], openKernelParts: ['io_uring'] }
    const terms = { hasInterface: true, takesRuntimeFilter: true }
    expect(() => checkLimits(asked, pod, terms)).not.toThrow()
    expect(() => checkLimits(asked, { ...pod, seccomp: 0 }, terms)).toThrow(/system calls/)
    expect(() => checkLimits(asked, pod, { hasInterface: true })).toThrow(/io_uring/)
    expect(() => checkLimits(asked, pod, { takesRuntimeFilter: true })).toThrow(/eth0/)
  })
})
