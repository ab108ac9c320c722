import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { containerSpec, TERMINALS } from '../docker/engine/container-spec.ts'
import { childSpec } from '../docker/servers/child-spec.ts'
import { readCall } from './allowed-calls.ts'
import { whyNotCreate, whyNotExec } from './create-rules.ts'

const limits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }
const owner = { deployment: 'd', instance: 'i' }
const sandbox = () => structuredClone(containerSpec({ limits, owner, image: 'sandbox:1', createdAt: 1, uid: 20_000 }))
const none = { networks: [] }

describe('what may be created', () => {
  it('a sandbox as the orchestrator makes it, and a child without folders', () => {
    expect(whyNotCreate(sandbox(), none)).toBeNull()
    const child = childSpec({ limits, image: 'i', server: 's', instance: 'i', folders: [], createdAt: 1, uid: 20_000 })
    expect(whyNotCreate(structuredClone(child), none)).toBeNull()
  })

  it.each([
    ['Privileged', true],
    ['privileged', true],
    ['Binds', ['/:/host']],
    ['Mounts', [{ Type: 'bind', Source: '/', Target: '/host' }]],
    ['Mounts', [{ ...TERMINALS, Target: '/host' }]],
    ['Mounts', [{ ...TERMINALS, Source: 'other' }]],
    ['Mounts', [{ ...TERMINALS, source: '/' }]],
    ['Tmpfs', { '/proc': 'rw,nosuid,nodev' }],
    ['Tmpfs', { '/workspace': 'rw,exec,nosuid,nodev,mpol=bind:0' }],
    ['Tmpfs', { '/workspace': 'rw,exec,suid,dev' }],
    ['Sysctls', { 'net.ipv4.ping_group_range': '0 2147483647' }],
    ['Sysctls', { 'net.ipv4.ping_group_range': '1 0', 'net.ipv4.ip_forward': '1' }],
    ['GroupAdd', ['0']],
    ['GroupAdd', ['10001', '0']],
    ['SecurityOpt', ['no-new-privileges']],
    ['SecurityOpt', ['no-new-privileges', 'seccomp=unconfined']],
    ['SecurityOpt', ['no-new-privileges', 'seccomp={"defaultAction":"SCMP_ACT_ALLOW"}']],
    ['CapAdd', ['SYS_ADMIN']],
    ['CapDrop', []],
    ['Devices', [{ PathOnHost: '/dev/sda' }]],
    ['PidMode', 'host'],
    ['IpcMode', 'host'],
    ['UsernsMode', 'host'],
    ['NetworkMode', 'host'],
    ['NetworkMode', 'container:x'],
    ['SecurityOpt', ['no-new-privileges', 'seccomp=unconfined']],
    ['SecurityOpt', ['apparmor=unconfined']],
    ['ReadonlyRootfs', false],
    ['VolumesFrom', ['x']],
    ['CgroupParent', '/'],
    ['Memory', 0],
    ['Memory', 8193 * 1024 * 1024],
    ['MemorySwap', -1],
    ['MemorySwap', 8193 * 1024 * 1024],
    ['NanoCpus', 8e9 + 1],
    ['PidsLimit', -1],
    ['PidsLimit', 4097],
    ['MaskedPaths', []],
    ['RestartPolicy', { Name: 'always' }],
    ['LogConfig', { Type: 'syslog', Config: { 'syslog-address': 'tcp://elsewhere' } }],
    ['LogConfig', { Type: 'none', type: 'syslog', Config: {} }],
    ['RestartPolicy', { Name: 'no', name: 'always' }],
    ['Ulimits', [{ Name: 'rtprio', Soft: 99, Hard: 99 }]],
    ['Ulimits', [{ Name: 'core', name: 'rtprio', Soft: 99, Hard: 99 }]],
    ['Ulimits', { Name: 'core' }],
    ['Ulimits', [{ Name: 'nofile', Soft: 4096, Hard: 4096 }]],
    ['Tmpfs', { '/workspace': 'rw,exec,nosuid,nodev' }],
    ['Mounts', []],
    ['Sysctls', {}],
    ['Runtime', 'runc'],
    // A container without one of these has what the engine's default allows.
    ...['LogConfig', 'Ulimits', 'Tmpfs', 'Mounts', 'Sysctls', 'IpcMode', 'OomScoreAdj', 'RestartPolicy'].map(
      (name): [string, undefined] => [name, undefined]
    )
  ])('HostConfig.%s %j is refused', (name, value) => {
    const body = sandbox()
    expect(whyNotCreate({ ...body, HostConfig: { ...body.HostConfig, [name]: value } }, none)).toContain(name)
  })

  it.each([
    ['User', 'root'],
    ['User', '0:0'],
    ['User', ''],
    ['User', '20000'],
    ['User', '20000:0'],
    ['User', '20000:20001'],
    ['User', '10001:10001'],
    ['User', '19999:19999'],
    ['User', '21000:21000'],
    ['Volumes', { '/x': {} }],
    ['WorkingDir', '/proc/self/fd/8'],
    ['WorkingDir', '//./proc/self/fd/8'],
    ['WorkingDir', '/workspace/../proc/self/fd/8'],
    ['WorkingDir', '/sys'],
    ['WorkingDir', 'workspace'],
    ['NetworkingConfig', { EndpointsConfig: { host: {} } }],
    ['Labels', {}],
    ['Labels', { 'mcp-orchestrator.app': 'sandbox', 'traefik.enable': 'true' }],
    ['Env', ['VIRTUAL_HOST=admin.example']],
    ['HostConfig', undefined]
  ])('%s %j is refused', (name, value) => {
    expect(whyNotCreate({ ...sandbox(), [name]: value }, none)).toEqual(expect.any(String))
  })

  it('any field that is not known is refused, in either place', () => {
    const body = sandbox()
    const known = new Set([...Object.keys(body), ...Object.keys(body.HostConfig ?? {})])
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.jsonValue(), (name, value) => {
        fc.pre(!known.has(name) && !/^(Env|Tty|OpenStdin|StdinOnce|Attach\w+|Runtime|Mounts|__proto__)$/.test(name))
        expect(whyNotCreate({ ...body, [name]: value }, none)).not.toBeNull()
        expect(whyNotCreate({ ...body, HostConfig: { ...body.HostConfig, [name]: value } }, none)).not.toBeNull()
      })
    )
  })

  it('a network only where the administrator named it', () => {
    const body = structuredClone(
      containerSpec({ limits: { ...limits, network: 'lab' }, owner, image: 'i', createdAt: 1, uid: 20_000 })
    )
    expect(whyNotCreate(body, none)).toContain('NetworkMode')
    expect(whyNotCreate(body, { networks: ['lab'] })).toBeNull()
  })

  it('as much as the administrator said', () => {
    const large = { ...limits, memoryMb: 16_384, cpus: 16, pids: 8192 }
    const body = structuredClone(containerSpec({ limits: large, owner, image: 'i', createdAt: 1, uid: 20_000 }))
    expect(whyNotCreate(body, none)).toContain('PidsLimit')
    expect(whyNotCreate(body, { networks: [], most: { memoryMb: 16_384, cpus: 16, pids: 8192 } })).toBeNull()
  })

  // Checked: if only `Privileged` is checked, `privileged` passes, which means the same to the engine.
  it.each([
    ...[{ Privileged: true }, { privileged: true }, { PRIVILEGED: true }, { User: 'root' }, { user: '0' }],
    ...[{ WorkingDir: '/proc/self/fd/8' }, { WorkingDir: '/dev/fd/8' }, { WorkingDir: '/x/../proc' }],
    ...[{ WorkingDir: '/tmp/link' }, { WorkingDir: '/workspace/link' }]
  ])('no process in a container with %j', (more) => {
    expect(whyNotExec({ Cmd: ['x'], ...more })).not.toBeNull()
    expect(whyNotExec({ Cmd: ['x'], Privileged: false, AttachStdin: true, Env: [], WorkingDir: '/process' })).toBeNull()
  })
})

describe('which calls pass', () => {
  it.each([
    ['GET', '/v1.41/containers/json?filters=%7B%22label%22%3A%5B%22mcp-orchestrator.app%3Dsandbox%22%5D%7D', 'read'],
    ['POST', '/containers/create?name=mcp-sandbox-1', 'create'],
    ['POST', '/containers/create', 'create'],
    ['DELETE', '/v1.44/containers/abc?force=true', 'container'],
    ['POST', '/exec/abc/start', 'exec'],
    ['POST', '/v1.41/containers/abc/start', 'container']
  ])('%s %s', (method, url, kind) => {
    expect(readCall(method, url)).toMatchObject({ kind })
  })

  it.each([
    ['GET', '/containers/json'],
    ['GET', '/containers/json?filters={"label":["other=1"]}'],
    ['GET', '/containers/abc/logs'],
    ['GET', '/containers/abc/archive?path=/'],
    ['PUT', '/containers/abc/archive?path=/'],
    ['POST', '/containers/abc/update'],
    ['POST', '/containers/abc/rename?name=y'],
    ['POST', '/containers/abc/start?checkpoint=c&checkpoint-dir=/somewhere'],
    ['POST', '/containers/abc/start??&checkpoint=c&checkpoint-dir=/somewhere'],
    ['POST', '/v1.23/containers/abc/start'],
    ['POST', '/v1.40/containers/abc/start'],
    ['POST', '/v1.041/containers/abc/start'],
    ['POST', '/v0.99/containers/abc/start'],
    ['POST', '/v1.9999/containers/abc/start'],
    ['POST', '/containers/create?name=x'],
    ['POST', '/containers/create?name=deadbeef'],
    ['POST', '/containers/create?name=mcp-1&name=deadbeef'],
    ['POST', '/containers/create?name=mcp-1;name=deadbeef'],
    ['POST', '/containers/create?Name=deadbeef'],
    ['POST', '/containers/create?name=mcp-1&platform=x'],
    ['DELETE', '/containers/abc?link=true'],
    ['GET', '/containers/json?filters={"label":["mcp-orchestrator.app=x"],"since":["other"]}'],
    ['GET', '/containers/json?filters={"label":["mcp-orchestrator.app=x"]}&filters={}'],
    ['GET', '/images/a/./json'],
    ['GET', '/images//json'],
    ['GET', '/images/a%2f..%2f..%2fcontainers%2fabc/json'],
    ['GET', '//containers/abc/json'],
    ['POST', '/build'],
    ['POST', '/images/create?fromImage=x'],
    ['POST', '/images/load'],
    ['POST', '/networks/create'],
    ['POST', '/volumes/create'],
    ['POST', '/swarm/init'],
    ['POST', '/plugins/pull'],
    ['GET', '/secrets'],
    ['POST', '/containers/prune'],
    ['GET', '/containers/%2e%2e/json'],
    ['GET', '/images/../containers/abc/json'],
    ['POST', '/v1.41/../build'],
    ['post', '/containers/create']
  ])('%s %s does not', (method, url) => {
    expect(readCall(method, url)).toBeNull()
  })
})
