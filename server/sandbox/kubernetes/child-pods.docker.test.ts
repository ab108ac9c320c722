/** Servers of the registry in pods, on a stand-in for the API server of a cluster. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  LIMITS,
  localImage,
  NAMESPACE,
  startTestCluster,
  type TestCluster
} from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import type { StandInOptions } from '../../../tests/fixtures/kubernetes/stand-in-cluster.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { ChildContainer, ChildContainerRequest, ChildContainers } from '../child-port.ts'
import { type ChildPodsOptions, createChildPods } from './child-pods.ts'

let image: string
let test: TestCluster
let pods: ChildContainers

beforeAll(async () => {
  image = await localImage()
})
afterEach(async () => {
  await pods.stopAll()
  await expect.poll(live).toEqual([])
  await test.stop()
})

const live = () => test.cluster.pods(NAMESPACE).map(({ metadata }) => metadata.name)

async function prepare(options: StandInOptions = {}, more: Partial<ChildPodsOptions> = {}) {
  test = await startTestCluster(options, image)
  const cluster = { kubeconfig: test.kubeconfig }
  pods = createChildPods({ cluster, limits: LIMITS, pods: { image }, logger: silentLogger, ...more })
}

function start(script: string, more: Partial<ChildContainerRequest> = {}): Promise<ChildContainer> {
  const request = { server: 'a server', command: 'bash', args: ['-c', script], env: {}, folders: [], hosts: [] }
  return pods.start({ ...request, onDenied: () => {}, ...more }, new AbortController().signal)
}

const firstLine = async (child: ChildContainer) => (await once(createInterface(child.stdout), 'line'))[0]

describe('a server in a pod', () => {
  it('has its input, both outputs and its environment, and is gone with its pod when it ends', async () => {
    await prepare()
    const script = 'echo "error $TOKEN" >&2; while read -r line; do echo "$TOKEN $line"; done; exit 7'
    const child = await start(script, { env: { TOKEN: 'se cret' } })
    const errors = once(createInterface(child.stderr), 'line')
    child.stdin.write('one\n')
    expect(await firstLine(child)).toBe('se cret one')
    expect(await errors).toEqual(['error se cret'])
    // The secret is in no request, so it is in no log of the API server.
    expect(JSON.stringify(test.cluster.pods(NAMESPACE))).not.toContain('se cret')
    expect(test.cluster.commands.join(' ')).not.toContain('se cret')
    expect(test.cluster.pods(NAMESPACE)[0]?.metadata.labels).toMatchObject({
      'mcp-orchestrator.app': 'child',
      'mcp-orchestrator.server': 'a-server'
    })
    child.stdin.end()
    expect(await child.exited).toBe('it ended with exit code 7')
    await expect.poll(live).toEqual([])
  })

  it('sees none of the cluster, and the limits of its entry', async () => {
    await prepare()
    const child = await start(
      'env; ulimit -u; cat /sys/fs/cgroup/memory{.max,/memory.limit_in_bytes} 2>/dev/null; echo end',
      {
        memoryMb: 200
      }
    )
    let said = ''
    for await (const line of createInterface(child.stdout)) {
      said += `${line}\n`
      if (line === 'end') break
    }
    expect(said).not.toContain('KUBERNETES')
    expect(said).toContain(`\n128\n${200 * 2 ** 20}\nend\n`)
  })

  // The holder ends the pod: nobody else would.
  it('ends with its processes when we are gone without a word', async () => {
    await prepare()
    const child = await start('sleep 1000 & echo started; sleep 1001')
    expect(await firstLine(child)).toBe('started')
    const [container = ''] = test.cluster.containers.values()
    // Nobody is left to delete the pod.
    test.cluster.fault = () => 'cut'
    test.cluster.cutStreams()
    expect(await child.exited).toBe('its container has ended')
    await expect
      .poll(async () => (await test.cluster.docker.getContainer(container).inspect()).State.Running)
      .toBe(false)
    test.cluster.fault = () => undefined
    for (const pod of test.cluster.pods(NAMESPACE)) test.cluster.objects.delete(pod)
  })

  it('is told to end, and ended if it does not', async () => {
    await prepare()
    const child = await start("trap '' TERM; echo started; while :; do sleep 1; done")
    expect(await firstLine(child)).toBe('started')
    await child.stop(100)
    await child.exited
    await expect.poll(live).toEqual([])
  })

  it.each([
    ['folders', { folders: ['/srv'] }],
    ['cwd', { cwd: '/srv' }]
  ])('that needs a folder of this machine (%s) is refused before there is a pod', async (_what, more) => {
    await prepare()
    await expect(start('true', more)).rejects.toMatchObject({
      code: 'server_not_startable',
      message: expect.stringContaining('a pod has no folders of this machine')
    })
    expect(test.cluster.calls).not.toContain('create /pods')
  })
})

describe('the network of a server in a pod', () => {
  // The check from inside must stop it before the server runs.
  it('is refused if it leads anywhere by itself, before anything has run', async () => {
    const [docker0] = networkInterfaces().docker0 ?? []
    await prepare({ enforcesPolicies: false, host: docker0?.address ?? '172.17.0.1' })
    await expect(start('true')).rejects.toMatchObject({ code: 'network_open' })
    expect(test.cluster.commands.filter((command) => command.includes('launch'))).toEqual([])
    await expect.poll(live).toEqual([])
  })

  it('has the hosts of its entry through our proxy, and no others', async () => {
    // The proxy connects to no port of its own process, so this one has a process of its own.
    const listen = `require('http').createServer((_, r) => r.end('from outside')).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
    const server = spawn(process.execPath, ['-e', listen])
    onTestFinished(() => void server.kill())
    const [port] = await once(createInterface(server.stdout), 'line')
    await prepare()
    const denied: string[] = []
    const get = (url: string) => `fetch('${url}').then((r) => r.text(), () => 'refused')`
    const api = test.cluster.address
    const script = `Promise.all([${get(`http://localhost:${port}/`)}, ${get('http://example.com/')}, ${get(api)}]).then((all) => console.log(all.join()))`
    const hosts = [`localhost:${port}`, `127.0.0.1:${test.cluster.port}`]
    const child = await start('', {
      ...{ command: 'node', args: ['-e', script], hosts },
      onDenied: (target) => denied.push(target)
    })
    expect(await firstLine(child)).toMatch(/^from outside,/)
    expect(denied.join()).toContain('example.com')
    // The cluster's API is ours alone, also if an entry names it.
    expect(denied.join()).toContain(`:${test.cluster.port}`)
  })
})

it('a check that gives no answer is an error, and leaves no pod', async () => {
  await prepare({}, { pods: { image }, limits: { ...LIMITS, memoryMb: 64, pids: 1 } })
  await expect(start('true')).rejects.toBeDefined()
  await expect.poll(live).toEqual([])
})
