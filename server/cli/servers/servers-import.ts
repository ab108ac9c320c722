import { join, resolve } from 'node:path'
import type { PlannedServer } from '../../../contract/servers/servers.ts'
import { showTarget } from '../../catalog/describe-target.ts'
import { addServers } from '../../catalog/edit-registry.ts'
import { openGrants } from '../../catalog/grants.ts'
import { chooseNames } from '../../catalog/import/choose-names.ts'
import { findClientServers, readClientFile } from '../../catalog/import/client-files.ts'
import { warnings } from '../../catalog/import/plan-servers.ts'
import { userDefaults, userHome } from '../../config/user-folders.ts'
import { showLine, showName } from '../../gateway/asking/show-as-data.ts'
import { AppError } from '../../lib/errors.ts'
import { packageRoot } from '../../lib/files/package-root.ts'
import { describeTargetLines } from './describe-target-lines.ts'
import { askedYes, print, type ServersContext } from './servers-context.ts'
import { describeMissing, missingOf, testCommand } from './servers-missing.ts'
import { findServerJson } from './servers-server-json.ts'

const HOW_TO_HAVE_BOTH =
  'Servers were left out because of their names, see above. To import them too, rename them in their file and import that file, or use "servers add".'

/** Shows what the servers of other clients would run, and imports them after confirmation. Existing entries are not changed. */
export async function importServers(context: ServersContext): Promise<number> {
  const { names, registry, file, flags, json } = context
  const [from] = names
  const place = { home: userHome(process.env), folder: process.cwd(), environment: process.env }
  const published = await findServerJson(context)
  const { servers, problems } =
    published ?? (from === undefined ? await findClientServers(place) : await readClientFile(resolve(from), place))
  const chosen = chooseNames(servers, registry.servers)
  for (const problem of new Set([...problems, ...chosen.problems])) process.stderr.write(`${showLine(problem)}\n`)
  const { fresh } = chosen
  const clashes = chosen.problems.length > 0 ? [HOW_TO_HAVE_BOTH] : []
  const rows = fresh.map(({ client, file: source, project, entry, notes }) => ({
    client,
    source,
    ...(project === undefined ? {} : { project }),
    ...showTarget(entry),
    notes,
    warnings: warnings(entry)
  }))
  if (fresh.length === 0) {
    print(context, { imported: [], found: servers.length }, [nothingNew(servers.length, problems, place), ...clashes])
    return 0
  }
  if (!json) print(context, rows, rows.flatMap(describe))
  // With --json nothing was shown, so there is nothing to confirm.
  if (
    flags.yes !== true &&
    (json || !(await askedYes(`Add ${fresh.length} ${fresh.length === 1 ? 'server' : 'servers'} to ${file}?`)))
  ) {
    throw new AppError(
      'cancelled',
      'not_confirmed',
      process.stdin.isTTY && !json ? 'Nothing was imported.' : 'Nothing was imported: confirm it, or give --yes.'
    )
  }
  await addServers(file, Object.fromEntries(fresh.map(({ name, raw }) => [name, raw])))
  const added = fresh.map(({ entry }) => entry)
  await openGrants(context.settings).accept(added, registry.servers.values())
  const missing = missingOf(added, context)
  print(context, { imported: rows, missing, file }, [
    `Added ${fresh.length} ${fresh.length === 1 ? 'server' : 'servers'} to ${file}.`,
    ...clashes,
    ...describeMissing(missing, context.settings.CREDENTIALS_FILE),
    ...(published === undefined
      ? [
          "Now replace them by the gateway in the client's own configuration. This guide shows how:",
          join(packageRoot(), 'docs/guides/clients.md')
        ]
      : [`To see whether it starts, run: ${testCommand(namesOf(added), file)}`]),
    ...sayOtherFile(file)
  ])
  return 0
}

const namesOf = (entries: { name: string }[]) => entries.map(({ name }) => name)

function nothingNew(found: number, problems: string[], { home, folder }: { home: string; folder: string }): string {
  if (problems.length > 0) return 'There is nothing new to import. See above for what was left out, and why.'
  if (found > 0) return 'There is nothing new to import.'
  return `No servers of other clients were found in their usual files under ${home} and ${folder}. Name a file: servers import FILE.`
}

/** In a folder with an `mcp.json`, the servers were added there, where a gateway that a client starts does not look. */
function sayOtherFile(file: string): string[] {
  const usual = userDefaults(process.env).MCP_CONFIG
  if (file === usual) return []
  return [`A gateway that a client starts reads ${usual}: add --config ${file} to its arguments.`]
}

type Row = PlannedServer & { client: string; source: string; project?: string; notes: string[] }

function describe(row: Row): string[] {
  const { name, client, source, project, target } = row
  const lines = [
    row.enabled ? '' : 'switched off, as in the client: "servers enable" switches it on',
    ...describeTargetLines(row),
    ...row.notes.map((note) => `- ${note}.`),
    ...row.warnings.map((warning) => `! ${warning}`)
  ].filter((line) => line !== '')
  const whose = [...new Set([client, source]), ...(project === undefined ? [] : [`project ${project}`])]
  const first = `${showName(name).padEnd(24)} ${showLine(target)}   (${showLine(whose.join(', '))})`
  return [first, ...lines.map((line) => `    ${showLine(line)}`)]
}
