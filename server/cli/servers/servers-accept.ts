import { describeTarget, showTarget } from '../../catalog/describe-target.ts'
import { warnings } from '../../catalog/import/plan-servers.ts'
import { secretNames } from '../../catalog/placeholders.ts'
import { type ServerEntry, valuesOf } from '../../catalog/server-entry.ts'
import { showAsData, showLine, showName } from '../../gateway/asking/show-as-data.ts'
import { AppError } from '../../lib/errors.ts'
import { describeTargetLines } from './describe-target-lines.ts'
import { askedYes, chosen, print, type ServersContext } from './servers-context.ts'
import { type ChangedTool, changedTools } from './servers-notes.ts'
import { withCore } from './servers-show.ts'

/**
 * Shows entries that wait for their secrets and tools whose definition changed, and accepts both after confirmation. It uses the tool
 * index and starts no server.
 */
export async function acceptChanges(context: ServersContext): Promise<number> {
  const entries = chosen(context)
  return withCore(context, async (core) => {
    const waiting = entries.filter((entry) => core.grants?.isWaiting(entry))
    const tools = await changedTools(entries, core)
    if (waiting.length + tools.length === 0) {
      const text = 'There is nothing to accept: no server and no tool has changed since it was accepted.'
      print(context, { accepted: [], servers: [] }, [text])
      return 0
    }
    if (!context.json) print(context, [], [...waiting.flatMap(describeEntry), ...tools.flatMap(describeTool)])
    const what = [
      ...(waiting.length > 0
        ? [`give ${waiting.length === 1 ? 'this server' : `these ${waiting.length} servers`} their secrets`]
        : []),
      ...(tools.length > 0 ? [`accept ${tools.length} definitions as they are now`] : [])
    ].join(', and ')
    if (context.flags.yes !== true && !(await askedYes(`Do you want to ${what}?`))) {
      throw new AppError('cancelled', 'not_confirmed', 'Nothing was accepted: confirm it, or give --yes.')
    }
    await core.grants?.accept(waiting)
    for (const { server, tool, after } of tools) await core.approvals?.definitions.accept(server, tool, after)
    const names = waiting.map(({ name }) => name)
    print(context, { accepted: tools, servers: names }, [
      ...(names.length > 0 ? [`Accepted ${names.map(showName).join(', ')}.`] : []),
      ...(tools.length > 0 ? [`Accepted ${tools.length} definitions.`] : [])
    ])
    return 0
  })
}

/** Everything that determines who gets the secrets, and what is done with them. */
function describeEntry(entry: ServerEntry): string[] {
  const values = valuesOf(entry)
  const lines = [
    `gets: ${secretNames(values).concat(environmentNames(values)).join(', ')}`,
    ...describeTargetLines(showTarget(entry)),
    ...warnings(entry).map((warning) => `! ${warning}`)
  ]
  return [`${showName(entry.name)} ${showLine(describeTarget(entry))}`, ...lines.map((line) => `  ${showLine(line)}`)]
}

function environmentNames(values: Record<string, string>): string[] {
  return Object.values(values).flatMap((text) => [...text.matchAll(/\$\{env:[^}]+\}/g)].map(([whole]) => whole))
}

function describeTool({ server, tool, before, after }: ChangedTool): string[] {
  return [
    `${showAsData(server)} ${showAsData(tool)}`,
    ...`  before: ${showAsData(before)}`.split('\n'),
    ...`  now:    ${showAsData(after)}`.split('\n')
  ]
}
