import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { type FoundServer, findClientServers, readClientFile } from '../catalog/client-files.ts'
import { describeTarget } from '../catalog/describe-target.ts'
import { addServers } from '../catalog/edit-registry.ts'
import { AppError } from '../lib/errors.ts'
import { askedYes, print, type ServersContext } from './servers-context.ts'

/** Shows the exact commands of what other clients have, and takes them over after a yes. What is there already stays as it is. */
export async function importServers(context: ServersContext): Promise<number> {
  const { names, registry, file, flags, json } = context
  const [from] = names
  const { servers: found, problems } =
    from === undefined
      ? await findClientServers(process.env.HOME || homedir(), process.cwd())
      : await readClientFile(from, resolve(from))
  for (const problem of new Set([...problems, ...clashes(found)])) process.stderr.write(`${problem}\n`)
  const fresh = firstOfEachName(found).filter(({ name }) => !registry.servers.has(name))
  const rows = fresh.map(({ name, client, file: source, entry }) => ({
    name,
    client,
    source,
    target: describeTarget(entry)
  }))
  if (fresh.length === 0) {
    print(context, { imported: [], found: found.length }, ['There is nothing new to import.'])
    return 0
  }
  if (!json)
    print(
      context,
      rows,
      rows.map(({ name, client, target }) => `${name.padEnd(24)} ${target}   (${client})`)
    )
  if (flags.yes !== true && !(await askedYes(`Add ${fresh.length} servers to ${file}?`))) {
    throw new AppError('cancelled', 'not_confirmed', 'Nothing was imported: confirm it, or give --yes.')
  }
  await addServers(file, Object.fromEntries(fresh.map(({ name, raw }) => [name, raw])))
  print(context, { imported: rows, file }, [`Added ${fresh.length} servers to ${file}.`])
  return 0
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
