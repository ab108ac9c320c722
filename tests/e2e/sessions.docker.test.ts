import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startCore, type TestCore } from '../support/start-core.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const docker = new Dockerode()
const newId = () => `test-${randomUUID()}`

async function noticesOf(core: TestCore, sessionId: string): Promise<string[]> {
  const events = await core.store.events.read(sessionId)
  return events.filter(({ type }) => type === 'session:notice').map(({ data }) => String(data.code))
}

describe('sessions on a real engine', () => {
  let core: TestCore

  beforeAll(async () => {
    core = await startCore()
  })

  afterAll(async () => {
    await core.stop()
    discard(core.dataDir)
  })

  it('makes exactly one container for 100 concurrent acquires of one session', async () => {
    const id = newId()
    const before = await core.containers()
    const seen = await Promise.all(
      Array.from({ length: 100 }, () => core.sessions.run(id, async ({ containerId }) => containerId))
    )
    expect(new Set(seen).size).toBe(1)
    expect((await core.containers()).length).toBe(before.length + 1)
    await core.sessions.destroy(id)
    expect((await core.containers()).length).toBe(before.length)
  })

  it('keeps 12 sessions apart that each write and read their marker 8 times', async () => {
    const ids = Array.from({ length: 12 }, newId)
    const read = await Promise.all(
      ids.map(async (id) => {
        const answers: string[] = []
        for (let round = 0; round < 8; round++) {
          await core.call(id, 'write_file', { path: 'marker.txt', content: `${id} ${round}` })
          answers.push(textOf(await core.call(id, 'read_file', { path: 'marker.txt' })))
        }
        return answers
      })
    )
    read.forEach((answers, at) => {
      answers.forEach((answer, round) => {
        expect(answer).toContain(`${ids[at]} ${round}`)
      })
      const others = ids.filter((_, other) => other !== at)
      expect(answers.some((answer) => others.some((other) => answer.includes(other)))).toBe(false)
    })
    await Promise.all(ids.map((id) => core.sessions.destroy(id)))
  })

  it('goes on in the same container with the same files', async () => {
    const id = newId()
    const first = await core.sessions.run(id, async ({ containerId }) => containerId)
    await core.sh(id, 'echo kept > a.txt')
    const second = await core.sessions.run(id, async ({ containerId }) => containerId)
    expect(second).toBe(first)
    expect(await core.sh(id, 'cat a.txt')).toContain('kept')
    await core.sessions.destroy(id)
  })

  it('repairs a server that died inside, in the same container', async () => {
    const id = newId()
    await core.sh(id, 'echo kept > a.txt')
    const before = await core.sessions.run(id, async ({ containerId }) => containerId)
    // The command ends its own server: same user, so it may.
    await expect(core.sh(id, 'kill -9 $PPID; sleep 5')).rejects.toMatchObject({ code: 'outcome_unknown' })
    expect(await core.sh(id, 'cat a.txt')).toContain('kept')
    expect(await core.sessions.run(id, async ({ containerId }) => containerId)).toBe(before)
    await core.sessions.destroy(id)
  })

  // Checked: if the container's epoch is believed, no call gets a sandbox any more.
  it('replaces a container in which a command made up a later epoch', async () => {
    const id = newId()
    await core.sh(id, 'echo kept > a.txt')
    const containerOf = () => core.sessions.run(id, async ({ containerId }) => containerId)
    const before = await containerOf()
    const locking = core.sh(id, 'mkdir /run/mcp/epochs/9999999999999999; kill -9 $PPID; sleep 5')
    await expect(locking).rejects.toMatchObject({ code: 'outcome_unknown' })
    expect(await core.sh(id, 'cat a.txt')).toContain('kept')
    expect(await containerOf()).not.toBe(before)
    await core.sessions.destroy(id)
  })

  it('replaces a container that was killed, with its files and a word to the user, and no neighbour notices', async () => {
    const [id, neighbour] = [newId(), newId()]
    await core.sh(
      id,
      'mkdir -p deep/er && echo kept > deep/er/a.txt && chmod 755 deep/er/a.txt && ln -s deep/er/a.txt link'
    )
    await core.sh(neighbour, 'echo mine > b.txt')
    const before = await core.sessions.run(id, async ({ containerId }) => containerId)
    await docker.getContainer(before).kill()
    expect(await core.sh(id, 'cat link && stat -c %a deep/er/a.txt')).toMatch(/kept[\s\S]*755/)
    expect(await core.sessions.run(id, async ({ containerId }) => containerId)).not.toBe(before)
    expect(await noticesOf(core, id)).toEqual(['sandbox_replaced', 'files_restored'])
    expect(await core.sh(neighbour, 'cat b.txt')).toContain('mine')
    expect(await noticesOf(core, neighbour)).toEqual([])
    expect((await core.containers()).includes(before)).toBe(false)
    await Promise.all([core.sessions.destroy(id), core.sessions.destroy(neighbour)])
  })

  it('never takes the empty workspace of a restarted container for the truth', async () => {
    const id = newId()
    await core.sh(id, 'echo kept > a.txt')
    const before = await core.sessions.run(id, async ({ containerId }) => containerId)
    await docker.getContainer(before).restart({ t: 0 })
    expect(await core.sh(id, 'cat a.txt')).toContain('kept')
    await core.sessions.destroy(id)
  })

  it('reports a call whose container died as unknown and does not run it again', async () => {
    const id = newId()
    const containerId = await core.sessions.run(id, async (workspace) => workspace.containerId)
    const call = core.sh(id, 'echo once >> log.txt; sleep 60')
    call.catch(() => {})
    await eventually('the command runs', async () => (await core.sh(id, 'cat log.txt 2>/dev/null')).includes('once'))
    await docker.getContainer(containerId).kill()
    await expect(call).rejects.toMatchObject({ code: 'outcome_unknown' })
    const results = (await core.store.events.read(id)).filter(({ data }) => data.outcome === 'unknown')
    expect(results.length).toBe(1)
    await core.sessions.destroy(id)
  })

  it('removes a session with everything that belongs to it', async () => {
    const id = newId()
    await core.sh(id, 'echo x > a.txt')
    await core.sessions.destroy(id)
    expect(await core.store.sessions.get(id)).toBeNull()
    expect(await core.store.events.read(id)).toEqual([])
    expect(await core.sh(id, 'ls -A')).not.toContain('a.txt')
    await core.sessions.destroy(id)
  })
})

describe('the life of sandboxes', () => {
  it('recycles idle sessions on time, busy ones never, and coming back finds the files', async () => {
    const core = await startCore({ SESSION_IDLE_SECONDS: '2', JANITOR_INTERVAL_SECONDS: '1' })
    try {
      const [idle, busy] = [newId(), newId()]
      await core.sh(idle, 'echo kept > a.txt; (sleep 1; echo late > background.txt) > /dev/null 2>&1 &')
      const command = core.sh(busy, 'sleep 6; echo done')
      await eventually(
        'the idle one is recycled',
        async () => (await core.store.sessions.get(idle))?.containerId === null
      )
      expect((await core.store.sessions.get(busy))?.containerId).not.toBeNull()
      expect(await command).toContain('done')
      expect(await core.sh(idle, 'cat a.txt background.txt')).toMatch(/kept[\s\S]*late/)
      expect(await noticesOf(core, idle)).toEqual(['sandbox_recycled', 'files_restored'])
    } finally {
      await core.stop()
      discard(core.dataDir)
    }
  })

  it('never takes the container from under someone who comes back while it is being recycled', async () => {
    const core = await startCore({ SESSION_IDLE_SECONDS: '1', JANITOR_INTERVAL_SECONDS: '3600' })
    try {
      const id = newId()
      for (let round = 0; round < 5; round++) {
        await core.sh(id, `echo ${round} >> rounds.txt`)
        const since = (await core.store.sessions.get(id))?.activeAt ?? 0
        await eventually('idle for long enough', async () => (await core.store.sessions.now()) > since + 1000)
        // The janitor marks it first, the person comes back before it is taken.
        const cleaning = core.sessions.janitor.round()
        const answer = await core.sh(id, 'sleep 0.3; wc -l < rounds.txt')
        await cleaning
        expect(answer).toContain(String(round + 1))
      }
    } finally {
      await core.stop()
      discard(core.dataDir)
    }
  })

  it('pauses a session that nobody looks at and wakes it on return', async () => {
    const core = await startCore({ PAUSE_AFTER_SECONDS: '1' })
    try {
      const [alone, watched] = [newId(), newId()]
      const leave = core.sessions.attach(watched)
      await Promise.all([core.sh(alone, 'echo kept > a.txt'), core.sh(watched, 'true')])
      await eventually('paused', () => core.sessions.state(alone) === 'paused')
      expect(core.sessions.state(watched)).toBe('running')
      expect(await core.sh(alone, 'cat a.txt')).toContain('kept')
      leave()
      await eventually('the other one too', () => core.sessions.state(watched) === 'paused')
    } finally {
      await core.stop()
      discard(core.dataDir)
    }
  })

  it('refuses a session over the limit with a sentence while all others work, and then gives it the place of an idle one', async () => {
    const core = await startCore({ MAX_SESSIONS: '2' })
    try {
      const [a, b, c] = [newId(), newId(), newId()]
      await core.sh(a, 'echo kept > a.txt')
      const working = [a, b].map((id) =>
        core.sh(id, 'touch started; while ! test -e /workspace/stop; do sleep 0.1; done')
      )
      const started = (id: string) => core.sh(id, 'test -e started && echo yes').then((text) => text.includes('yes'))
      for (const id of [a, b]) await eventually('started', () => started(id))
      await expect(core.sh(c, 'true')).rejects.toMatchObject({ code: 'too_many_sessions', kind: 'unavailable' })
      await Promise.all([a, b].map((id) => core.sh(id, 'touch stop')))
      await Promise.all(working)
      await core.sh(b, 'true')
      await core.sh(c, 'true')
      expect((await core.containers()).length).toBe(2)
      expect(await noticesOf(core, a)).toContain('sandbox_recycled')
      expect(await core.sh(a, 'cat a.txt')).toContain('kept')
      expect((await core.containers()).length).toBe(2)
    } finally {
      await core.stop()
      discard(core.dataDir)
    }
  })

  it('stops without leaving a container, and finds the files at the next start', async () => {
    const dataDir = temporaryFolder()
    const first = await startCore({ WARM_POOL_SIZE: '2' }, {}, dataDir)
    const id = newId()
    await eventually('the pool is full', () => first.sessions.pool.ready === 2)
    const warm = await first.sessions.run(id, async ({ containerId }) => containerId)
    expect(await first.containers()).toContain(warm)
    await first.sh(id, 'echo kept > a.txt')
    const deployment = await first.store.sessions.deploymentId()
    await first.stop()
    const second = await startCore({}, {}, dataDir)
    try {
      expect(await second.store.sessions.deploymentId()).toBe(deployment)
      expect(await second.containers()).toEqual([])
      expect(await second.sh(id, 'cat a.txt')).toContain('kept')
    } finally {
      await second.stop()
      discard(dataDir)
    }
  })

  it('removes orphans of its own deployment only; that their instance is dead is proven by the lock on the folder', async () => {
    const core = await startCore({ JANITOR_INTERVAL_SECONDS: '3600' }, { sessions: { orphanGraceMs: 0 } })
    const deployment = await core.store.sessions.deploymentId()
    const orphan = await core.engine.create({ deployment, instance: 'dead-instance' })
    const foreign = await core.engine.create({ deployment: `foreign-${randomUUID()}`, instance: 'someone' })
    try {
      await core.sessions.janitor.round()
      expect(await core.engine.inspect(orphan)).toBeNull()
      expect(await core.engine.inspect(foreign)).toMatchObject({ running: true })
    } finally {
      await core.engine.remove(foreign)
      await core.engine.remove(orphan)
      await core.stop()
      discard(core.dataDir)
    }
  })

  it('refills the pool, and a crashed pool member is replaced', async () => {
    const core = await startCore({ WARM_POOL_SIZE: '1' })
    try {
      await eventually('the pool is full', () => core.sessions.pool.ready === 1)
      const [member] = await core.containers()
      await docker.getContainer(member!).kill()
      await eventually('a new one is there', async () => {
        const now = await core.containers()
        return core.sessions.pool.ready === 1 && now.length === 1 && now[0] !== member
      })
      const [next] = await core.containers()
      expect(await core.sessions.run(newId(), async ({ containerId }) => containerId)).toBe(next)
    } finally {
      await core.stop()
      discard(core.dataDir)
    }
  })
})
