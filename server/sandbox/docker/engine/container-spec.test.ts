import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../../../lib/files/package-root.ts'
import type { SandboxLimits } from '../../port.ts'
import { containerSpec, TERMINALS } from './container-spec.ts'
import { seccompOption } from './seccomp-profile.ts'

const limits: SandboxLimits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }
const input = { limits, owner: { deployment: 'd', instance: 'i' }, image: 'image:1', createdAt: 1234, uid: 20_007 }

describe('containerSpec', () => {
  it('has the idle time that the docs promise', () => {
    const guide = readFileSync(join(packageRoot(), 'docs/guides/troubleshooting.md'), 'utf8')
    expect(guide).toContain('running containers end after half an hour')
    expect(containerSpec(input).Cmd).toEqual(['1800'])
  })

  it('sets every hardening field', () => {
    expect(containerSpec(input)).toMatchObject({
      Image: 'image:1',
      User: '20007:20007',
      NetworkDisabled: true,
      HostConfig: {
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges', seccompOption()],
        Privileged: false,
        ReadonlyRootfs: true,
        NetworkMode: 'none',
        IpcMode: 'private',
        Init: false,
        PidsLimit: 128,
        Memory: 536_870_912,
        MemorySwap: 536_870_912,
        NanoCpus: 500_000_000,
        OomScoreAdj: 500,
        RestartPolicy: { Name: 'no' },
        AutoRemove: false,
        LogConfig: { Type: 'none' }
      }
    })
  })

  it('bounds every writable place', () => {
    const { HostConfig } = containerSpec(input)
    expect(Object.keys(HostConfig?.Tmpfs ?? {})).toEqual(['/workspace', '/tmp', '/run/mcp'])
    for (const options of Object.values(HostConfig?.Tmpfs ?? {})) {
      expect(options).toMatch(/nosuid,nodev/)
      expect(options).toMatch(/size=\d+m/)
      expect(options).toMatch(/nr_inodes=\d+/)
    }
    expect(HostConfig?.Tmpfs?.['/workspace']).toContain('size=256m')
    expect(HostConfig?.Tmpfs?.['/run/mcp']).toContain('uid=20007,gid=20007')
    expect(HostConfig?.Ulimits).toContainEqual({ Name: 'fsize', Soft: 268_435_456, Hard: 268_435_456 })
    expect(HostConfig?.Ulimits).toContainEqual({ Name: 'core', Soft: 0, Hard: 0 })
  })

  it('carries no environment, devices, ports or mounts other than its terminals', () => {
    const { Env, ExposedPorts, HostConfig } = containerSpec(input)
    expect([Env, ExposedPorts, HostConfig?.Binds, HostConfig?.Devices]).toEqual(Array(4).fill(undefined))
    expect(HostConfig?.Mounts).toEqual([TERMINALS])
    expect([HostConfig?.PortBindings, HostConfig?.CapAdd]).toEqual([undefined, undefined])
  })

  it('names a runtime and a network only when asked to', () => {
    expect(containerSpec(input).HostConfig).not.toHaveProperty('Runtime')
    const other = containerSpec({ ...input, limits: { ...limits, runtime: 'runsc', network: 'inner' } })
    expect(other.HostConfig).toMatchObject({ Runtime: 'runsc', NetworkMode: 'inner' })
    expect(other.NetworkDisabled).toBe(false)
  })

  it('has the same spec hash for the same spec, whoever made it and when', () => {
    const hash = (changed: Partial<typeof input>) =>
      containerSpec({ ...input, ...changed }).Labels?.['mcp-orchestrator.spec']
    expect(hash({ createdAt: 9, uid: 20_008, owner: { deployment: 'x', instance: 'y' } })).toBe(hash({}))
    expect(hash({ limits: { ...limits, pids: 127 } })).not.toBe(hash({}))
    expect(hash({ image: 'image:2' })).not.toBe(hash({}))
    expect(containerSpec(input).Labels).toMatchObject({
      'mcp-orchestrator.app': 'sandbox',
      'mcp-orchestrator.deployment': 'd',
      'mcp-orchestrator.instance': 'i',
      'mcp-orchestrator.created': '1234'
    })
  })
})
