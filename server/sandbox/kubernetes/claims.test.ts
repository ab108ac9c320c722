/** Pods without containers: what counts here is what the API server says. */
import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { addPods, startBareCluster } from '../../../tests/fixtures/kubernetes/bare-pods.ts'
import { serveFakeWorkspace } from '../../../tests/fixtures/kubernetes/fake-server.ts'
import { LIMITS, NAMESPACE, type TestCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { ApiFailure, type Stored } from '../../../tests/fixtures/kubernetes/objects.ts'
import type { StandInOptions } from '../../../tests/fixtures/kubernetes/stand-in-cluster.ts'
import { LABEL, STATE } from './pod-spec.ts'

let test: TestCluster
afterEach(() => test.stop())

async function start(options: StandInOptions = {}) {
  test = await startBareCluster(options)
}

const addSpares = (count: number) => addPods(test, count, { state: STATE.spare })

describe('spare pods', () => {
  // Checked: without the `test` steps, instances get the same pod.
  it('are given to one of three instances each, 100 at once, also if answers get lost', async () => {
    await start()
    addSpares(100)
    let patches = 0
    test.cluster.fault = (call) => {
      if (call !== 'patch pods' || ++patches % 7 > 1) return undefined
      return patches % 7 === 0 ? 'lost' : 'late'
    }
    const instances = ['one', 'two', 'three'].map((instance) => ({
      engine: test.engine({ spares: 1 }),
      owner: { ...test.owner, instance }
    }))
    const claims = Array.from({ length: 100 }, (_, n) => instances[n % 3]).map((each) =>
      each?.engine.create(each.owner)
    )
    const ids = await Promise.all(claims)
    expect(new Set(ids).size).toBe(100)
    for (const { engine } of instances) await engine.close()
    const used = test.cluster.pods(NAMESPACE).filter(({ metadata }) => metadata.labels[LABEL.state] === STATE.used)
    // No pod is taken without being given to someone.
    expect(used.map(({ metadata }) => `${metadata.name}@${metadata.uid}`).sort()).toEqual([...ids].sort())
    const listed = await Promise.all(instances.map(({ engine, owner }) => engine.list(owner.deployment)))
    expect(listed[0]).toHaveLength(100)
  })

  it('are made again after a claim, and do not count as sandboxes of an instance', async () => {
    await start()
    const engine = test.engine({ spares: 2 })
    const first = await engine.create(test.owner)
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toHaveLength(3)
    expect((await engine.list(test.owner.deployment)).map(({ id }) => id)).toEqual([first])
    const second = await engine.create({ ...test.owner, instance: 'other' })
    expect(await engine.list(test.owner.deployment)).toContainEqual(
      expect.objectContaining({ id: second, instance: 'other' })
    )
  })

  it('are made by the janitor too: before the first session, and again when they have ended', async () => {
    await start()
    const engine = test.engine({ spares: 7 })
    const live = () =>
      test.cluster.pods(NAMESPACE).filter(({ status }) => (status as { phase: string }).phase === 'Running')
    await engine.sweep(test.owner.deployment)
    await expect.poll(live).toHaveLength(7)
    for (const pod of live()) test.cluster.setStatus(pod, { phase: 'Succeeded' })
    await engine.sweep(test.owner.deployment)
    await expect.poll(live).toHaveLength(7)
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toHaveLength(7)
  })

  it('that this server may not change are an error, after one try', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['list', 'create', 'get', 'watch'] }]
    await start({ rules })
    addSpares(20)
    let patches = 0
    const engine = test.engine({ spares: 1 })
    const patch = engine.api.patchPod.bind(engine.api)
    engine.api.patchPod = (...args) => {
      patches += 1
      return patch(...args)
    }
    await expect(engine.create(test.owner)).rejects.toMatchObject({ code: 'engine_forbidden' })
    expect(patches).toBe(1)
  })

  it('are looked for with one list, however many sessions ask at once', async () => {
    await start()
    const spares = addSpares(150)
    const engine = test.engine({ spares: 1 })
    let pages = 0
    test.cluster.fault = (call) => {
      if (call === 'list pods') pages += 1
      return undefined
    }
    const ids = await Promise.all(Array.from({ length: 60 }, () => engine.create(test.owner)))
    expect(ids.map((id) => id.split('@')[0]).filter((name = '') => spares.includes(name))).toHaveLength(60)
    // One to take them, and those of the filling.
    expect(pages).toBeLessThan(6)
  })

  it('of another image or other limits are not taken', async () => {
    await start()
    const spares = addSpares(1)
    const id = await test.engine({ spares: 1, pods: { image: 'newer' } }).create(test.owner)
    expect(spares).not.toContain(id.split('@')[0])
  })
})

describe('a new pod', () => {
  // Checked: if a timeout of the server counts as a refusal, the pod is left behind.
  it.each(['lost', 'late'] as const)(
    'whose answer is %s is found and used, also if the API is away meanwhile',
    async (how) => {
      await start()
      let creates = 0
      let reads = 0
      test.cluster.fault = (call) => {
        if (call === 'create pods') return ++creates === 1 ? how : undefined
        return call === 'get pods' && ++reads < 3 ? 'cut' : undefined
      }
      const id = await test.engine().create(test.owner)
      expect(test.cluster.pods(NAMESPACE).map(({ metadata }) => `${metadata.name}@${metadata.uid}`)).toEqual([id])
    }
  )

  // Checked: before, the first question that was not answered gave the pod up.
  it('is waited for while the API server is away', async () => {
    await start()
    test.cluster.unschedulable = '0/2 nodes are available.'
    let asked = 0
    test.cluster.fault = (call) => {
      if (call === 'watch pods') test.cluster.cutStreams()
      if (call === 'create pods' || ++asked > 6) return undefined
      if (asked < 6) return 'cut'
      const [pod] = test.cluster.pods(NAMESPACE)
      if (pod) test.cluster.setStatus(pod, { phase: 'Running' })
      return undefined
    }
    const id = await test.engine({ startMs: 60_000 }).create(test.owner)
    expect(id).toBe(test.cluster.pods(NAMESPACE).map(({ metadata }) => `${metadata.name}@${metadata.uid}`)[0])
  })

  type Spec = Record<string, unknown> & { containers: Record<string, unknown>[]; volumes: unknown[] }
  const changes: [string, (spec: Spec) => void][] = [
    ['container istio-proxy', (spec) => spec.containers.push({ name: 'istio-proxy', image: 'proxy' })],
    ['initContainers', (spec) => Object.assign(spec, { initContainers: [{ name: 'init', image: 'init' }] })],
    ['volumes', (spec) => spec.volumes.push({ name: 'token', projected: { sources: [] } })],
    ['automountServiceAccountToken', (spec) => delete spec.automountServiceAccountToken],
    ['hostUsers', (spec) => delete spec.hostUsers],
    ['hostNetwork', (spec) => Object.assign(spec, { hostNetwork: true })],
    ['dnsPolicy', (spec) => Object.assign(spec, { dnsPolicy: 'ClusterFirst' })],
    [
      'env',
      (spec) => Object.assign(spec.containers[0] ?? {}, { env: [{ name: 'HTTP_PROXY', value: 'http://proxy' }] })
    ],
    ['securityContext', (spec) => Object.assign(spec.containers[0] ?? {}, { securityContext: { privileged: true } })]
  ]
  // Checked: without the comparison, each of these is used.
  it.each(changes)('is refused and removed if the cluster changes it: %s', async (what, change) => {
    // The rules of the cluster come before its webhooks here, so that more can be tried.
    await start({ mutates: ({ spec }) => change(spec as Spec) })
    const engine = test.engine({ pods: { image: 'sandbox', hostUsers: false } })
    await expect(engine.create(test.owner)).rejects.toMatchObject({ code: 'pod_changed', where: `changed: ${what}` })
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toEqual([])
  })

  it('is used if the cluster adds what does not open it', async () => {
    const harmless = {
      nodeName: 'node-1',
      priority: 0,
      schedulerName: 'default-scheduler',
      serviceAccountName: 'default'
    }
    await start({ mutates: ({ spec }) => Object.assign(spec as Spec, harmless) })
    await test.engine().create(test.owner)
  })
})

// Without the sweep, they would stay for ever, with their user ids.
it('removes what nobody else will: ended pods and pods that have waited for hours, of any deployment', async () => {
  await start()
  addSpares(5)
  const engine = test.engine()
  const used = await engine.create({ deployment: 'gone', instance: 'gone' })
  const [ended, fresh, waiting, recent, running] = test.cluster.pods(NAMESPACE)
  const finishedAt = (minutesAgo: number) => {
    const state = { terminated: { exitCode: 0, finishedAt: new Date(Date.now() - minutesAgo * 60_000).toISOString() } }
    return { phase: 'Succeeded', containerStatuses: [{ name: 'sandbox', state }] }
  }
  const set = (pod: Stored | undefined, status: object) => pod && test.cluster.setStatus(pod, status)
  set(ended, finishedAt(20))
  set(fresh, finishedAt(1))
  for (const [pod, hours] of [
    [waiting, 3],
    [recent, 1]
  ] as const) {
    const { namespace = '', name = '', uid = '' } = pod?.metadata ?? {}
    test.cluster.objects.change('Pod', namespace, name, uid, (object) => {
      object.metadata.creationTimestamp = new Date(Date.now() - hours * 3_600_000).toISOString()
      object.status = { phase: 'Pending' }
    })
  }
  await engine.sweep(test.owner.deployment)
  const names = () => test.cluster.pods(NAMESPACE).map(({ metadata }) => metadata.name)
  const stay = [fresh, recent, running].map((pod) => pod?.metadata.name)
  await expect.poll(names).toEqual([...stay, used.split('@')[0]])
})

describe('a busy API server', () => {
  it('is asked again when it says so (429), and nothing is made twice', async () => {
    await start({ exec: serveFakeWorkspace })
    const busy = new ApiFailure(429, 'TooManyRequests', 'the server has received too many requests')
    const refused = new Map<string, number>()
    test.cluster.fault = (call) => {
      const times = refused.get(call) ?? 0
      refused.set(call, times + 1)
      return times < 2 ? busy : undefined
    }
    const engine = test.engine({ spares: 1 })
    const id = await engine.create(test.owner)
    await engine.connect(id, 1)
    expect(await engine.list(test.owner.deployment)).toHaveLength(1)
    await engine.remove(id)
  })

  it('that counts two pods at once against a quota does not use up the names', async () => {
    await start({ exec: serveFakeWorkspace })
    const message = 'Operation cannot be fulfilled on resourcequotas "sandboxes": the object has been modified'
    let conflicts = 0
    test.cluster.fault = (call) =>
      call === 'create pods' && conflicts++ < 3 ? new ApiFailure(409, 'Conflict', message) : undefined
    const uids = { first: 20_000, last: 20_000 }
    const id = await test.engine({ limits: { ...LIMITS, uids } }).create(test.owner)
    expect(id).toMatch(/^mcp-sandbox-20000@/)
    expect(conflicts).toBe(4)
  })
})

describe('a cluster without room', () => {
  it('or with a network that fails says so for the pod that did not start', async () => {
    await start()
    const where = 'plugin type="x" failed: dial tcp 10.9.8.7:443: i/o timeout'
    test.cluster.unschedulable = 'wait'
    test.cluster.fault = (call) => {
      const [pod] = test.cluster.pods(NAMESPACE)
      if (call !== 'watch pods' || !pod) return undefined
      test.cluster.setStatus(pod, { phase: 'Pending' })
      for (const [second, type, reason, uid] of [
        [2, 'Warning', 'FailedCreatePodSandBox', pod.metadata.uid],
        [1, 'Warning', 'FailedMount', pod.metadata.uid],
        [3, 'Normal', 'Scheduled', pod.metadata.uid],
        [4, 'Warning', 'Other', 'of another pod']
      ])
        test.cluster.objects.create('Event', NAMESPACE, {
          ...{ metadata: { name: randomUUID() }, type, reason, message: where },
          lastTimestamp: `2026-01-01T00:00:0${second}Z`,
          involvedObject: { uid }
        })
      return undefined
    }
    const error = await test
      .engine({ startMs: 300 })
      .create(test.owner)
      .catch((caught) => caught)
    expect(error).toMatchObject({ code: 'engine_timeout', where: `FailedCreatePodSandBox: ${where}` })
    expect(error.message).toContain('The cluster says: FailedCreatePodSandBox.')
    expect(error.message).not.toContain('10.9.8.7')
  })

  it('says which quota is used up', async () => {
    await start({ maxPods: 1 })
    const engine = test.engine()
    await engine.create(test.owner)
    await expect(engine.create(test.owner)).rejects.toMatchObject({
      code: 'cluster_full',
      message: expect.stringMatching(/no room in the cluster: .*exceeded quota: sandboxes/)
    })
  })

  it('says why no node takes the pod, and keeps no pod that waits', async () => {
    await start()
    test.cluster.unschedulable = '0/2 nodes are available: 2 Insufficient memory.'
    const engine = test.engine({ startMs: 50 })
    await expect(engine.create(test.owner)).rejects.toMatchObject({
      code: 'cluster_full',
      message: 'There is no room in the cluster: 0/2 nodes are available: 2 Insufficient memory.'
    })
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toEqual([])
  })
})

it('says in the chat that the image is missing, and to operators alone where it was looked for', async () => {
  await start()
  test.cluster.unschedulable = 'wait'
  test.cluster.fault = (call) => {
    const [pod] = test.cluster.pods(NAMESPACE)
    const message = 'dial tcp 10.9.8.7:443: i/o timeout'
    const state = { waiting: { reason: 'ErrImagePull', message } }
    if (call === 'watch pods' && pod)
      test.cluster.setStatus(pod, { phase: 'Pending', containerStatuses: [{ name: 'sandbox', state }] })
    return undefined
  }
  const error = await test
    .engine()
    .create(test.owner)
    .catch((caught) => caught)
  expect(error).toMatchObject({ code: 'image_missing', where: expect.stringContaining('10.9.8.7') })
  expect(error.message).not.toContain('10.9.8.7')
})

describe('a shutdown', () => {
  it('waits for no pod that has no node, and leaves none of them', async () => {
    await start()
    test.cluster.unschedulable = '0/2 nodes are available.'
    const engine = test.engine({ spares: 2 })
    const creating = engine.create(test.owner)
    const gone = expect(creating).rejects.toMatchObject({ code: 'shutting_down' })
    await expect.poll(() => test.cluster.calls).toContain('watch /pods')
    engine.stopStarting()
    await gone
    await engine.close()
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toEqual([])
    await expect(engine.create(test.owner)).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('waits for no spare pod that has no node', async () => {
    await start()
    const phases = () => test.cluster.pods(NAMESPACE).map(({ status }) => (status as { phase: string }).phase)
    const engine = test.engine({ spares: 1 })
    await engine.create(test.owner)
    await expect.poll(phases).toEqual(['Running', 'Running'])
    test.cluster.unschedulable = '0/2 nodes are available.'
    await engine.create(test.owner)
    await expect.poll(phases).toEqual(['Running', 'Running', 'Pending'])
    await engine.close()
    await expect.poll(phases).toEqual(['Running', 'Running'])
  })
})

describe('an API server', () => {
  it('that refuses is explained by what is missing', async () => {
    await start({ rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }] })
    await expect(test.engine().create(test.owner)).rejects.toMatchObject({
      code: 'engine_forbidden',
      message: expect.stringContaining('may not create a pod'),
      where: expect.stringMatching(/^namespace sandboxes: pods is forbidden/)
    })
  })

  it('that is down is named with its address to operators, and with nothing of our credentials', async () => {
    await start()
    const engine = test.engine()
    const { address } = test.cluster
    await test.cluster.stop()
    const calls = [
      engine.status(),
      engine.create(test.owner),
      engine.connect('x@y', 1),
      engine.inspect('x@y'),
      engine.list('x')
    ]
    for (const result of await Promise.allSettled(calls)) {
      const expected = { code: 'engine_unavailable', where: `at ${address}` }
      expect(result).toMatchObject({ status: 'rejected', reason: expected })
      expect(JSON.stringify(result)).not.toContain('secret-token')
      // Chat users see the message.
      expect((result as PromiseRejectedResult).reason.message).not.toContain(address)
    }
  })
})
