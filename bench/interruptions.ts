/** How often a person is interrupted: 20 scripted tasks, each with several files and commands, in every approval mode. */
import { randomUUID } from 'node:crypto'
import { APPROVAL_MODES, type ApprovalMode } from '../contract/effects/modes.ts'
import type { Client } from '../tests/support/client.ts'
import { type Served, serve, stopServers } from '../tests/support/serve.ts'
import { NO_LIMITS } from './no-limits.ts'
import { round, step } from './statistics.ts'

const TASKS = Array.from({ length: 20 }, (_, at) => {
  const name = `task${at}`
  const steps = [
    `run mkdir -p ${name}/src ${name}/test`,
    `write ${name}/src/main.py: print("${name}")`,
    `write ${name}/test/check.sh: python3 ${name}/src/main.py | grep -q ${name}`,
    `run sh ${name}/test/check.sh && echo passed > ${name}/result.txt`,
    `run mv ${name}/result.txt ${name}/done.txt`
  ]
  return steps.slice(0, 3 + (at % 3))
})

export async function interruptionFigures(): Promise<object> {
  try {
    const server = await serve({ ...NO_LIMITS, WARM_POOL_SIZE: '2' })
    const figures: Record<string, object> = {}
    for (const mode of APPROVAL_MODES) figures[mode] = await step(`interruptions: ${mode}`, () => play(server, mode))
    return { tasks: TASKS.length, ...figures }
  } finally {
    await stopServers()
  }
}

async function play(server: Served, mode: ApprovalMode): Promise<object> {
  const counts: number[] = []
  for (const messages of TASKS) {
    const client = server.connect(`bench-${randomUUID()}`)
    await client.snapshot()
    await client.ask('mode:select', { mode })
    const interruptions = decideAll(client)
    for (const message of messages) await converse(client, message)
    counts.push(interruptions() + (mode === 'review' ? await acceptReview(client) : 0))
    client.close()
  }
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { perTask: round(total / counts.length), most: Math.max(...counts) }
}

/** Approves every card and keeps every preview at once. Returns how many there were so far. */
function decideAll(client: Client): () => number {
  let count = 0
  const approve = ({ callId, hash }: { callId: string; hash: string }) => {
    count += 1
    void client.ask('tool:approval', { callId, hash, approved: true })
  }
  client.socket.on('tool:approval_required', (card) => {
    if (card.ahead === undefined) approve(card)
  })
  client.socket.on('tool:previewed', approve)
  return () => count
}

async function converse(client: Client, message: string): Promise<void> {
  const from = client.seen.length
  const { turnId } = await client.ask('message', message)
  await client.wait('turn:end', (data) => data.turnId === turnId, { from })
}

/** The last review has the changes of all messages. */
async function acceptReview(client: Client): Promise<number> {
  const turnId = client.all('turn:end').at(-1)?.turnId
  const { reviewId, changes } = await client.wait('review:opened', (data) => data.turnId === turnId)
  const { hash } = changes as { hash: string }
  await client.ask('review:decide', { reviewId, hash, accept: 'all' })
  await client.wait('review:applied')
  return 1
}
