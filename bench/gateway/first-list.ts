/** Measures the time from start to the first tool list of eight real servers: asked directly, and exposed by the gateway. */
import { round, step, summary, timed } from '../statistics.ts'
import type { EightServers } from './tools-list.ts'
import { connectStdio, type Folder, registryFolder, startGateway } from './ways.ts'

const ROUNDS = 5
const LIST_MS = 60_000

export interface FirstList {
  /** Seconds until the slowest of them has listed its tools; all start at the same time. */
  directS: number
  /** Without anything in the data folder. */
  coldS: number
  /** The number of tools in that list, and of those that all have. */
  coldTools: number
  allTools: number
  /** With the data folder of the first start. */
  secondStartS: number
}

export async function firstListTimes({ servers }: EightServers): Promise<FirstList> {
  const times: Record<'direct' | 'cold' | 'second', number[]> = { direct: [], cold: [], second: [] }
  const counts = { cold: [] as number[], all: 0 }
  for (let turn = 0; turn < ROUNDS; turn++) {
    await step(`gateway: first list of eight servers, ${turn + 1} of ${ROUNDS}`, async () => {
      const named = [...servers].map(([name, entry]) => [name.replace(/\W+/g, '-').replace(/^-/, ''), entry] as const)
      const folder = registryFolder(Object.fromEntries(named))
      counts.all = 0
      times.direct.push(await directly(servers, (tools) => (counts.all += tools)))
      times.cold.push(await exposed(folder, (tools) => counts.cold.push(tools)))
      times.second.push(await exposed(folder))
      folder.remove()
    })
  }
  const seconds = (values: number[]) => round(summary(values).p50 / 1000)
  return {
    directS: seconds(times.direct),
    coldS: seconds(times.cold),
    coldTools: summary(counts.cold).p50,
    allTools: counts.all,
    secondStartS: seconds(times.second)
  }
}

async function directly(servers: EightServers['servers'], listed: (tools: number) => void): Promise<number> {
  const closing: (() => Promise<void>)[] = []
  const took = await timed(() =>
    Promise.all(
      [...servers.values()].map(async ({ command, args, env }) => {
        const { client } = await connectStdio(command, args, env, 'auto')
        closing.push(() => client.close())
        listed((await client.listTools(undefined, { timeout: LIST_MS })).tools.length)
      })
    )
  )
  await Promise.all(closing.map((close) => close()))
  return took
}

async function exposed(folder: Folder, listed?: (tools: number) => void): Promise<number> {
  let close = async () => {}
  const took = await timed(async () => {
    const { client } = await startGateway(folder, 'legacy', ['--expose', 'all'])
    close = () => client.close()
    listed?.((await client.listTools(undefined, { timeout: LIST_MS })).tools.length)
  })
  await close()
  return took
}
