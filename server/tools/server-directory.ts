/**
 * Manages the registry's servers for a person: their health and tools; adding, testing, switching and removing them. Its only
 * state is the file. Invariant: nothing is added that was not shown before, word for word, to the person who adds it.
 */

import { createHmac } from 'node:crypto'
import type { ChangeRule, EditServer, EntryDraft } from '../../contract/servers/entry-edits.ts'
import type { ImportReply, ImportServers } from '../../contract/servers/import.ts'
import type { GetPrompt, OffersReply, PromptReply, ResourceReply } from '../../contract/servers/offers.ts'
import type {
  AddedReply,
  PlanReply,
  ServerDetail,
  ServerProblem,
  ServerSummary,
  ServersAdmin,
  ServersReply,
  TestReply,
  ToolTrial,
  ToolTrialReply,
  TriedTool
} from '../../contract/servers/servers.ts'
import type { Audit } from '../audit/audit.ts'
import { offerTools } from '../calls/offered-tool.ts'
import { maskedTarget, showTarget } from '../catalog/describe-target.ts'
import { addServers, removeServer, switchServer } from '../catalog/edit-registry.ts'
import { type Grants, grantHash } from '../catalog/grants.ts'
import type { ImportPlace } from '../catalog/import/client-files.ts'
import { secretsInUse, takeSecretsOut } from '../catalog/import/move-secrets.ts'
import { planServers, type ServersPlan } from '../catalog/import/plan-servers.ts'
import { readEntry } from '../catalog/read-entry.ts'
import type { Registry, RegistryProblem } from '../catalog/registry.ts'
import type { ServerEntry } from '../catalog/server-entry.ts'
import { storeSecrets } from '../catalog/store-secrets.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { type Connections, unknownServer } from '../connections/connections.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import { alikeName } from '../lib/near-names.ts'
import type { ApprovalPolicy } from '../policy/approval-policy.ts'
import type { DefinitionGuard } from '../policy/definition-guard.ts'
import { type KeyValueStore, sharedSecret } from '../storage/key-value-store.ts'
import { changeToolRule, draftOf, editServer } from './edit-server.ts'
import { findImports, importServers } from './import-servers.ts'
import { serverHealth } from './server-health.ts'
import { getPrompt, listOffers, readResource } from './server-offers.ts'
import type { ToolIndex } from './tool-index.ts'
import { findTool, tryTool } from './try-tool.ts'

export interface ServerDirectoryOptions {
  file: string
  keyValues: Pick<KeyValueStore, 'get' | 'add'>
  registry(): Registry
  /** Why the file can't be used, if it can't. */
  problem(): string | undefined
  /** Applies the current file. */
  reload(): Promise<void>
  core(): Promise<{
    index: ToolIndex
    connections: Connections
    policy: ApprovalPolicy
    audit: Audit
    enrichment?: { embedded(server: string): number | undefined } | undefined
  }>
  /** The chat's policy. */
  policy: ApprovalPolicy
  guard: DefinitionGuard
  grants: Pick<Grants, 'accept' | 'isWaiting'>
  credentialsFile?: string | undefined
  /** Where other clients keep their servers; missing if this instance does not only serve this machine. */
  importPlace?: ImportPlace | undefined
  /** The end of what a server wrote to stderr. */
  log(server: string, owner: string): Promise<string>
}

export interface AddRequest {
  text: string
  moveSecrets?: boolean | undefined
  confirm?: string | undefined
}

const HIDDEN_REASON = 'An administrator can see why.'
const HIDDEN_TARGET = { target: null, cwd: null, env: [], headers: [], sandbox: null, log: null, hash: null }

export class ServerDirectory {
  readonly #options: ServerDirectoryOptions

  constructor(options: ServerDirectoryOptions) {
    this.#options = options
  }

  /** `admin` says what the caller may do. Only administrators see commands, addresses and paths. */
  async list(admin: ServersAdmin = 'allowed'): Promise<ServersReply> {
    const { file, registry, problem } = this.#options
    const { servers, problems } = registry()
    const isAdmin = admin === 'allowed'
    const summaries = await Promise.all([...servers.values()].map((entry) => this.#summary(entry)))
    return {
      admin,
      file: isAdmin ? file : null,
      // `problem` and `problems` may quote the file.
      problem: isAdmin ? (problem() ?? null) : null,
      servers: isAdmin ? summaries : summaries.map((summary) => ({ ...withoutReason(summary), target: null })),
      problems: isAdmin ? problems.map(shownProblem) : [],
      exposure: isAdmin ? ((await this.#exposure(servers)) ?? null) : null
    }
  }

  /** Not needed if every server is remote or in a sandbox. */
  async #exposure(servers: Registry['servers']): Promise<string | undefined> {
    const isExposed = [...servers.values()].some((entry) => entry.kind === 'local' && entry.enabled && !entry.sandbox)
    return isExposed ? (await this.#options.core()).connections.exposure() : undefined
  }

  /** `owner` is the caller. Logs of another owner's servers are not shown. */
  async detail(name: string, owner: string, admin: ServersAdmin = 'allowed'): Promise<ServerDetail> {
    const entry = this.#entry(name)
    const { index } = await this.#options.core()
    const { tools, ...summary } = await this.#summary(entry)
    const shown = {
      ...summary,
      ...showTarget(entry),
      tools: tools.map((tool) => ({ ...tool, description: index.tool(name, tool.name)?.description ?? '' }))
    }
    if (admin !== 'allowed') return { ...withoutReason(shown), ...HIDDEN_TARGET }
    return { ...shown, hash: grantHash(entry), log: await this.#options.log(name, owner) }
  }

  /** For administrators only. */
  log(name: string, owner: string): Promise<string> {
    this.#entry(name)
    return this.#options.log(name, owner)
  }

  /** Without the right `confirm` it only returns what would be added. */
  async add(request: AddRequest): Promise<PlanReply | AddedReply> {
    const { file, credentialsFile, keyValues } = this.#options
    const { confirm } = request
    const { plan, secrets } = this.#plan(request)
    // Only a client that can read our reply can confirm it; a page on another site can make a browser send a request, but can't read
    // the reply. All instances on a store share the key, because the confirmation may reach another instance than the plan.
    const key = await sharedSecret(keyValues, 'server-plans')
    const hash = createHmac('sha256', key)
      .update(canonicalJson([plan.raw, [...secrets]]))
      .digest('base64url')
    if (confirm === undefined) {
      return {
        confirm: plan.servers.length > 0 ? hash : null,
        servers: plan.servers,
        problems: plan.problems.map(shownProblem),
        canMoveSecrets: credentialsFile !== undefined
      }
    }
    if (confirm !== hash || plan.servers.length === 0) {
      const message = 'The servers to add have changed since they were shown. Review them again, then confirm.'
      throw new AppError('conflict', 'confirmation_stale', message)
    }
    if (credentialsFile && secrets.size > 0) await storeSecrets(credentialsFile, secrets)
    await addServers(file, plan.raw)
    const added = Object.entries(plan.raw).map(([name, raw]) => readEntry(name, raw, 0))
    await this.#options.grants.accept(added, this.#options.registry().servers.values())
    await this.#options.reload()
    return { added: Object.keys(plan.raw) }
  }

  /** Starts the server if necessary and lists its tools: a running server alone does not prove that it works. */
  async test(name: string, owner: string, signal: AbortSignal, admin: ServersAdmin = 'allowed'): Promise<TestReply> {
    this.#enabledEntry(name)
    const { connections } = await this.#options.core()
    const began = performance.now()
    const reply = (tools: number, reason: string | null) => {
      return { ok: reason === null, ms: Math.round(performance.now() - began), tools, reason }
    }
    try {
      const tools = await connections.test(name, { caller: { owner, door: 'http' }, signal })
      return reply(tools.length, tools.length === 0 ? 'It runs, but has no tools.' : null)
    } catch (error) {
      const didNotStart = isAppError(error) && error.details.start === true
      const seen = didNotStart && admin === 'allowed' ? connections.state(name)?.lastError : undefined
      return reply(0, seen?.message ?? messageOf(error))
    }
  }

  /** For administrators only: see try-tool.ts. */
  async tool(server: string, owner: string, tool: string, signal: AbortSignal): Promise<TriedTool> {
    return findTool(await this.#trialDeps(server), { server, owner, signal }, tool)
  }

  async try(server: string, owner: string, trial: ToolTrial, signal: AbortSignal): Promise<ToolTrialReply> {
    return tryTool(await this.#trialDeps(server), { server, owner, signal }, trial)
  }

  /** For administrators only, like the next two: see server-offers.ts. */
  async offers(server: string, owner: string, signal: AbortSignal): Promise<OffersReply> {
    return listOffers(await this.#trialDeps(server), { server, owner, signal })
  }

  async resource(server: string, owner: string, uri: string, signal: AbortSignal): Promise<ResourceReply> {
    return readResource(await this.#trialDeps(server), { server, owner, signal }, uri)
  }

  async prompt(server: string, owner: string, prompt: GetPrompt, signal: AbortSignal): Promise<PromptReply> {
    return getPrompt(await this.#trialDeps(server), { server, owner, signal }, prompt)
  }

  async #trialDeps(server: string) {
    this.#enabledEntry(server)
    const { policy } = this.#options
    return { ...(await this.#options.core()), policy }
  }

  /** Ends its processes; the next call starts it again. */
  async restart(name: string): Promise<void> {
    this.#enabledEntry(name)
    await (await this.#options.core()).connections.stop(name)
  }

  /** For administrators only, like the next two: see edit-server.ts. */
  draft(name: string): Promise<EntryDraft> {
    return draftOf(this.#options, name)
  }

  edit(name: string, request: EditServer): Promise<PlanReply | { saved: string }> {
    return editServer(this.#options, name, request)
  }

  changeRule(name: string, change: ChangeRule): Promise<void> {
    return changeToolRule(this.#options, name, change)
  }

  /** For administrators at this machine only, like the next one: see import-servers.ts. */
  findImports(moveSecrets: boolean): Promise<ImportReply> {
    return findImports(this.#options, moveSecrets)
  }

  import(request: ImportServers): Promise<AddedReply> {
    return importServers(this.#options, request)
  }

  async switch(name: string, on: boolean): Promise<void> {
    this.#entry(name)
    await switchServer(this.#options.file, name, on)
    await this.#options.reload()
  }

  /** Grants an entry its secrets, if it is still the one that was shown. */
  async accept(name: string, hash: unknown): Promise<void> {
    const entry = this.#entry(name)
    if (hash !== grantHash(entry)) {
      const message = 'The entry has changed since it was shown. Review it again, then accept it.'
      throw new AppError('conflict', 'confirmation_stale', message)
    }
    await this.#options.grants.accept([entry])
  }

  /** Also removes an entry that can't be read. */
  async remove(name: string): Promise<void> {
    await removeServer(this.#options.file, name)
    await this.#options.reload()
  }

  #plan({ text, moveSecrets }: AddRequest): { plan: ServersPlan; secrets: Map<string, string> } {
    const { registry, credentialsFile } = this.#options
    const { servers, problems } = registry()
    const plan = planServers(text, (name) => {
      const isTaken = alikeName(servers.keys(), name) !== undefined
      return isTaken || problems.some(({ server, fatal }) => fatal && server === name)
    })
    if (!moveSecrets || credentialsFile === undefined) return { plan, secrets: new Map() }
    const moved = takeSecretsOut(plan.raw, secretsInUse(servers.values()))
    const shown = planServers(JSON.stringify({ mcpServers: moved.servers }), () => false)
    return { plan: { ...shown, problems: plan.problems }, secrets: moved.secrets }
  }

  #entry(name: string): ServerEntry {
    const entry = this.#options.registry().servers.get(name)
    if (entry) return entry
    throw unknownServer(name)
  }

  #enabledEntry(name: string): void {
    if (this.#entry(name).enabled) return
    throw new AppError('conflict', 'server_off', `"${name}" is switched off. Switch it on first.`)
  }

  async #summary(entry: ServerEntry): Promise<ServerSummary> {
    const { name, kind, enabled } = entry
    const { index, connections, policy, enrichment } = await this.#options.core()
    const embedded = enabled ? enrichment?.embedded(name) : undefined
    const record = index.record(name)
    const state = connections.state(name)
    const tools = enabled ? (record?.tools ?? []) : []
    const changed = await this.#changed(name, tools)
    return {
      name,
      kind,
      target: maskedTarget(entry),
      enabled,
      ...serverHealth(enabled, record, state),
      isWaiting: this.#options.grants.isWaiting(entry),
      state: state?.state ?? 'stopped',
      tools: tools.map((tool) => ({
        name: tool.name,
        verdict: this.#options.policy(name, tool.name),
        outside: policy(name, tool.name),
        changed: changed.has(tool.name)
      })),
      seenAt: record?.seenAt || null,
      startMs: record?.startMs ?? null,
      startedAt: state?.startedAt ?? null,
      calls: connections.calls(name),
      processes: state?.instances.filter(({ pid }) => pid !== undefined).length ?? 0,
      ...(embedded === undefined ? {} : { embedded })
    }
  }

  async #changed(server: string, tools: StoredTool[]): Promise<Set<string>> {
    const offered = offerTools(server, tools, new Set())
    const changes = await this.#options.guard.changes(offered)
    return new Set(offered.filter(({ modelName }) => changes.has(modelName)).map(({ name }) => name))
  }
}

/** A reason may contain commands, paths and the end of the log. */
function withoutReason<T extends Pick<ServerSummary, 'lastError'>>(summary: T): T {
  const { lastError } = summary
  return lastError ? { ...summary, lastError: { ...lastError, message: HIDDEN_REASON } } : summary
}

function shownProblem({ server, line, reason, fatal }: RegistryProblem): ServerProblem {
  return { server: server ?? null, line, reason, fatal }
}
