import { expect, it } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { Toolbox } from './toolbox.ts'

const DEFINITIONS = [{ name: 'read_file', inputSchema: { type: 'object' as const } }]
const { signal } = new AbortController()

function toolbox(): Toolbox {
  return new Toolbox({
    sources: () => [],
    ownerOf: async () => 'local',
    policy: () => 'ask',
    guard: { changes: async () => new Map() },
    audit: { begin: () => () => {} } as never,
    logger: silentLogger
  })
}

const holding = (workspace: () => Promise<Pick<Workspace, 'listTools'>>) => ({ workspace }) as HeldSession
const open = holding(async () => ({ listTools: async () => DEFINITIONS as never }))
const slow = () => new AppError('timeout', 'engine_timeout', 'Waited 30 s for the container engine.')

// Seen with 50 sessions at once: the model was asked without the sandbox's tools, because one of 50 sandboxes was slow.
it('offers the tools of the sandbox even if this one is slow, once any sandbox has listed them', async () => {
  const tools = toolbox()
  const { promise: failing, reject } = Promise.withResolvers<never>()
  const late = tools.offer(
    holding(() => failing),
    'a',
    signal
  )
  await tools.offer(open, 'b', signal)
  reject(slow())
  expect(await late).toMatchObject({ tools: [{ name: 'read_file' }], missing: [] })
})

it('names the sandbox as left out where none has ever listed its tools, and asks again the next time', async () => {
  const tools = toolbox()
  const failing = holding(() => Promise.reject(slow()))
  expect(await tools.offer(failing, 'a', signal)).toMatchObject({
    tools: [],
    missing: [{ server: 'workspace', why: expect.stringMatching(/sandbox is left out: Waited 30 s/) }]
  })
  expect(await tools.offer(open, 'a', signal)).toMatchObject({ tools: [{ name: 'read_file' }], missing: [] })
})
