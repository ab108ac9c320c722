import { showAsData } from '../gateway/asking/show-as-data.ts'
import { AppError } from '../lib/errors.ts'
import { askedYes, chosen, print, type ServersContext } from './servers-context.ts'
import { withCore } from './servers-show.ts'

/** Shows which definitions are not the accepted ones, and accepts them after a yes. As last seen: it starts no server. */
export async function acceptDefinitions(context: ServersContext): Promise<number> {
  const servers = chosen(context).map(({ name }) => name)
  return withCore(context, async ({ index, approvals }) => {
    const rows: { server: string; tool: string; before: string; after: string }[] = []
    for (const server of servers) {
      for (const tool of index.tools(server) ?? []) {
        const change = await approvals?.definitions.change(server, tool)
        if (change) rows.push({ server, tool: tool.name, ...change })
      }
    }
    if (rows.length === 0) {
      print(context, { accepted: [] }, ['There is nothing to accept: no tool has changed since it was accepted.'])
      return 0
    }
    if (!context.json) {
      const shown = rows.flatMap(({ server, tool, before, after }) => [
        `${showAsData(server)} ${showAsData(tool)}`,
        `  before: ${showAsData(before)}`,
        `  now:    ${showAsData(after)}`
      ])
      print(context, rows, shown)
    }
    if (context.flags.yes !== true && !(await askedYes(`Accept ${rows.length} definitions as they are now?`))) {
      throw new AppError('cancelled', 'not_confirmed', 'Nothing was accepted: confirm it, or give --yes.')
    }
    for (const { server, tool, after } of rows) await approvals?.definitions.accept(server, tool, after)
    print(context, { accepted: rows }, [`Accepted ${rows.length} definitions.`])
    return 0
  })
}
