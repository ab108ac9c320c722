import { resolve } from 'node:path'
import type { PlannedServer } from '../../contract/servers.ts'
import { type FoundServer, findClientServers, readClientFile } from '../catalog/client-files.ts'
import { showTarget } from '../catalog/describe-target.ts'
import { addServers } from '../catalog/edit-registry.ts'
import { openGrants } from '../catalog/grants.ts'
import { warnings } from '../catalog/plan-servers.ts'
import { showLine, showName } from '../gateway/asking/show-as-data.ts'
import { AppError } from '../lib/errors.ts'
import { askedYes, print, type ServersContext } from './servers-context.ts'
import { userDefaults, userHome } from './user-folders.ts'

/** Shows all that decides what other clients' servers do, as the page does, and takes them over after a yes. What is there already stays as it is. */
export async function importServers(context: ServersContext): Promise<number> {
  const { names, registry, file, flags, json } = context
  const [from] = names
  const { servers: found, problems } =
    from === undefined
      ? await findClientServers(userHome(process.env), process.cwd())
      : await readClientFile(from, resolve(from))
  for (const problem of new Set([...problems, ...clashes(found)])) {
    process.stderr.write(`${showLine(problem)}\n`)
  }
  const fresh = firstOfEachName(found).filter(({ name }) => !registry.servers.has(name))
  const rows = fresh.map(({ client, file: source, entry }) => ({
    client,
    source,
    ...showTarget(entry),
    warnings: warnings(entry)
  }))
  if (fresh.length === 0) {
    print(context, { imported: [], found: found.length }, ['There is nothing new to import.'])
    return 0
  }
  if (!json) print(context, rows, rows.flatMap(describe))
  // Who has been shown nothing can't say yes to it.
  if (flags.yes !== true && (json || !(await askedYes(`Add ${fresh.length} servers to ${file}?`)))) {
    throw new AppError('cancelled', 'not_confirmed', 'Nothing was imported: confirm it, or give --yes.')
  }
  await addServers(file, Object.fromEntries(fresh.map(({ name, raw }) => [name, raw])))
  const added = fresh.map(({ entry }) => entry)
  await openGrants(context.settings.DATA_DIR, file).accept(added, registry.servers.values())
  print(context, { imported: rows, file }, [
    `Added ${fresh.length} servers to ${file}.`,
    "Now remove them from the client's own list, and add the gateway there in their place: docs/guides/clients.md says how.",
    ...sayOtherFile(file)
  ])
  return 0
}

/** In a folder with an `mcp.json` the servers went there: a gateway that a client starts would not find them. */
function sayOtherFile(file: string): string[] {
  const usual = userDefaults(process.env).MCP_CONFIG
  if (file === usual) return []
  return [`A gateway that a client starts reads ${usual}: give it the arguments --config ${file}, too.`]
}

type Row = PlannedServer & { client: string }

function describe({ name, client, target, cwd, env, headers, sandbox, approval, warnings: twice }: Row): string[] {
  const names = [...env, ...headers].map((value) => value.name).join(', ')
  const rules = Object.entries(approval).map(([glob, verdict]) => `${glob} ${verdict}`)
  const more = [
    cwd === null ? '' : `in ${cwd}`,
    names === '' ? '' : `${env.length > 0 ? 'variables' : 'headers'}: ${names}`,
    sandbox === null ? '' : `sandbox: image ${sandbox.image ?? 'of the sandbox'}, network ${sandbox.network}`,
    rules.length === 0 ? '' : `approval: ${rules.join(', ')}`,
    ...twice.map((warning) => `! ${warning}`)
  ]
  const lines = more.filter((line) => line !== '').map((line) => `    ${showLine(line)}`)
  return [`${showName(name).padEnd(24)} ${showLine(target)}   (${showLine(client)})`, ...lines]
}

function firstOfEachName(found: FoundServer[]): FoundServer[] {
  return [...new Map(found.toReversed().map((server) => [server.name, server])).values()].toReversed()
}

function clashes(found: FoundServer[]): string[] {
  const kept = new Map(firstOfEachName(found).map((server) => [server.name, server]))
  return found.flatMap(({ name, client, file, entry }) => {
    const first = kept.get(name)
    if (first === undefined || first.entry.fingerprint === entry.fingerprint) return []
    return [`${file}: server "${name}" of ${client} is left out: ${first.client} has another one of this name.`]
  })
}
