import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, expect, it, vi } from 'vitest'
import type { ServerSummary } from '../../contract/servers/servers.ts'
import { api } from '../api.ts'
import { useServers } from './servers.ts'

let there: ServerSummary[] = []
const works = { ok: true, ms: 1, tools: 2, reason: null }

beforeEach(() => {
  setActivePinia(createPinia())
  there = [
    {
      ...{
        name: 'files',
        kind: 'local',
        target: 'files',
        enabled: true,
        health: 'ok',
        isWaiting: false,
        state: 'stopped',
        tools: []
      },
      ...{ seenAt: 1, startMs: 1, startedAt: null, lastError: { at: 1, message: 'long ago' }, calls: 0, processes: 0 }
    }
  ]
  const servers = () => there.map((server) => ({ ...server }))
  vi.spyOn(api, 'servers').mockImplementation(async () => ({
    ...{ admin: 'allowed' as const, file: '', problem: null, problems: [], exposure: null, servers: servers() }
  }))
})

function change(news: Partial<ServerSummary>): void {
  there = there.map((server) => ({ ...server, ...news }))
}

it('shows how a test ended until there is other news of the server', async () => {
  const servers = useServers()
  const tested = async () => {
    await servers.load()
    return servers.tests.get('files')
  }
  vi.spyOn(api, 'testServer').mockImplementation(async () => {
    change({ lastError: null })
    return works
  })
  await servers.load()
  await servers.test('files')
  change({ calls: 1 })
  expect(await tested()).toEqual(works)
  change({ lastError: { at: 2, message: 'It crashed.' } })
  expect(await tested()).toBeUndefined()

  await servers.test('files')
  expect(await tested()).toEqual(works)
  change({ enabled: false })
  expect(await tested()).toBeUndefined()

  change({ enabled: true })
  await servers.test('files')
  there = []
  expect(await tested()).toBeUndefined()
})

it('leaves a test alone that runs', async () => {
  const servers = useServers()
  const done = Promise.withResolvers<typeof works>()
  vi.spyOn(api, 'testServer').mockImplementation(() => done.promise)
  const test = servers.test('files')
  change({ lastError: { at: 2, message: 'It does not start at once.' } })
  await servers.load()
  expect(servers.tests.get('files')).toBe('running')
  done.resolve(works)
  await test
  expect(servers.tests.get('files')).toEqual(works)
})
