/**
 * Imports servers of the other MCP clients on this machine for an administrator. Invariant: exactly what was shown is added, and existing
 * entries are not changed.
 */
import type { ImportableServer, ImportReply, ImportServers } from '../../contract/servers/import.ts'
import type { AddedReply } from '../../contract/servers/servers.ts'
import { showTarget } from '../catalog/describe-target.ts'
import { addServers, type RawEntry } from '../catalog/edit-registry.ts'
import { chooseNames } from '../catalog/import/choose-names.ts'
import { findClientServers, type ImportPlace } from '../catalog/import/client-files.ts'
import { secretsInUse, takeSecretsOut } from '../catalog/import/move-secrets.ts'
import { warnings } from '../catalog/import/plan-servers.ts'
import { secretNames } from '../catalog/placeholders.ts'
import { readEntry } from '../catalog/read-entry.ts'
import { valuesOf } from '../catalog/server-entry.ts'
import { storeSecrets } from '../catalog/store-secrets.ts'
import { AppError } from '../lib/errors.ts'
import { type EditDeps, planKey, sign } from './edit-server.ts'

export interface ImportDeps extends EditDeps {
  /** Missing if this instance does not only serve this machine. */
  importPlace?: ImportPlace | undefined
}

interface Found {
  shown: ImportableServer
  raw: RawEntry
  secrets: Map<string, string>
}

/** Reads the files of other clients, and nothing else. */
export async function findImports(deps: ImportDeps, moveSecrets: boolean): Promise<ImportReply> {
  const { found, problems } = await find(deps, moveSecrets)
  return { servers: found.map(({ shown }) => shown), problems, canMoveSecrets: deps.credentialsFile !== undefined }
}

export async function importServers(deps: ImportDeps, request: ImportServers): Promise<AddedReply> {
  const { file, credentialsFile, grants, registry, reload } = deps
  const { found } = await find(deps, request.moveSecrets === true)
  const chosen = request.chosen.map(({ name, confirm }) => {
    const match = found.find(({ shown }) => shown.name === name && shown.confirm === confirm)
    if (match) return match
    const message = `"${name.slice(0, 100)}" has changed since it was shown, so nothing was imported. Review it again.`
    throw new AppError('conflict', 'confirmation_stale', message)
  })
  const secrets = new Map(chosen.flatMap((each) => [...each.secrets]))
  if (credentialsFile && secrets.size > 0) await storeSecrets(credentialsFile, secrets)
  await addServers(file, Object.fromEntries(chosen.map(({ shown, raw }) => [shown.name, raw])))
  const added = chosen.map(({ shown, raw }) => readEntry(shown.name, raw, 0))
  await grants.accept(added, registry().servers.values())
  await reload()
  return { added: added.map(({ name }) => name) }
}

async function find(deps: ImportDeps, moveSecrets: boolean): Promise<{ found: Found[]; problems: string[] }> {
  const { importPlace, credentialsFile, registry } = deps
  if (importPlace === undefined) {
    const message =
      'This server does not only listen on loopback, so it reads no files of other clients. Use: mcp-orchestrator servers import'
    throw new AppError('forbidden', 'import_local_only', message)
  }
  const key = await planKey(deps)
  const { servers, problems } = await findClientServers(importPlace)
  const { fresh, problems: clashes } = chooseNames(servers, registry().servers)
  const theirs = Object.fromEntries(fresh.map(({ name, raw }) => [name, raw]))
  const canMove = moveSecrets && credentialsFile !== undefined
  // Together, so that no two of them get the same name for their secrets.
  const moved = canMove ? takeSecretsOut(theirs, secretsInUse(registry().servers.values())) : undefined
  const found = fresh.map(({ name, raw: original, client, file, project, notes }): Found => {
    const raw = moved?.servers[name] ?? original
    const entry = readEntry(name, raw, 0)
    const used = secretNames(valuesOf(entry))
    const secrets = new Map([...(moved?.secrets ?? [])].filter(([secret]) => used.includes(secret)))
    const confirm = sign(key, ['import', name, raw, [...secrets]])
    const source = { client, source: file, project: project ?? null, notes, confirm }
    return { shown: { ...showTarget(entry), warnings: warnings(entry), ...source }, raw, secrets }
  })
  return { found, problems: [...new Set([...problems, ...clashes])] }
}
