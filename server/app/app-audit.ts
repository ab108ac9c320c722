/** The audit log of this process, and the secrets that must not get into it. */
import { type Audit, auditOwner, openAudit } from '../audit/audit.ts'
import type { AuditMirror } from '../audit/bucket/audit-mirror.ts'
import type { AuditShipper } from '../audit/bucket/audit-shipper.ts'
import { readAudit } from '../audit/read-audit.ts'
import type { ToolObserver } from '../calls/tool-observer.ts'
import type { Credentials } from '../catalog/credentials.ts'
import { literalSecrets } from '../catalog/literal-secrets.ts'
import { fillPlaceholders } from '../catalog/placeholders.ts'
import type { Registry } from '../catalog/registry.ts'
import { SECRET_SETTINGS, type Settings } from '../config/settings.ts'
import type { AuditReader } from '../http/routes/audit-routes.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import { KnownSecrets } from '../lib/known-secrets.ts'
import type { Logger } from '../lib/logger.ts'
import type { RecordedCalls } from '../sessions/feed/recorded-calls.ts'
import { type TurnOptions, takeTurn } from '../storage/key-value-store.ts'
import { CollectorRounds } from '../storage/object-checkpoints/collector-rounds.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import { dataPaths } from './data-paths.ts'

/** The audit logs of all instances, in a bucket. */
export interface AuditSink {
  shipper: AuditShipper
  mirror: AuditMirror
  objects: Bucket['objects']
}

export interface AuditLog {
  audit: Audit
  /** Set if there is a bucket. */
  sink?: AuditSink | undefined
  /** From now on, rows are copied to the bucket, if there is one, and old ones are removed there. */
  share(turn: TurnOptions, logger: Logger): void
  /** Copies the last rows to the bucket, too. */
  close(): Promise<void>
  /** Observer for metrics. */
  observer: ToolObserver | undefined
  /** Values that it returns are redacted from then on. */
  trackSecrets(credentials: Credentials): Credentials
  /** The secrets that the registry refers to, as far as they have values now. */
  registerSecrets(registry: Registry, credentials: Credentials): void
}

const DAY_MS = 86_400_000
const PRUNE_MS = 3_600_000
/** Rows of other instances on the page may be this old. */
const FRESH_MS = 2000
const MB = 1024 * 1024

/** Loaded only if there is a bucket. */
export async function openAuditSink(
  settings: Settings,
  bucket: Pick<Bucket, 'objects' | 'prefix'> | undefined,
  logger: Logger
): Promise<AuditSink | undefined> {
  if (!bucket) return undefined
  const [{ AuditShipper: Shipper }, { AuditMirror: Mirror }] = await Promise.all([
    import('../audit/bucket/audit-shipper.ts'),
    import('../audit/bucket/audit-mirror.ts')
  ])
  const { objects, prefix } = bucket
  const { audit: dir, auditCopies } = dataPaths(settings.DATA_DIR)
  const { AUDIT_MAX_MB, AUDIT_ROUTES_MAX_MB, AUDIT_LAG_SECONDS } = settings
  const lag = { maxLagMs: AUDIT_LAG_SECONDS * 1000, maxLagBytes: AUDIT_MAX_MB * MB }
  const maxBytes = 2 * (AUDIT_MAX_MB + AUDIT_ROUTES_MAX_MB) * MB
  const mirror = new Mirror({ objects, prefix, dir: auditCopies, own: dir, maxBytes })
  return { shipper: new Shipper({ dir, objects, prefix, ...lag, logger }), mirror, objects }
}

/** Removes old rows from the bucket. One instance at a time does it. */
function pruner(settings: Settings, audit: Audit, sink: AuditSink, turn: TurnOptions) {
  return {
    async round(): Promise<void> {
      if (!(await takeTurn(turn, 'audit-pruner', PRUNE_MS))) return
      const { pruneBucket } = await import('../audit/bucket/prune-bucket.ts')
      const { AUDIT_MAX_MB, AUDIT_ROUTES_MAX_MB, RETENTION_DAYS } = settings
      const maxBytes = { calls: AUDIT_MAX_MB * MB, routes: AUDIT_ROUTES_MAX_MB * MB }
      await pruneBucket({
        ...{ mirror: sink.mirror, objects: sink.objects, own: dataPaths(settings.DATA_DIR).audit },
        limits: { maxBytes, maxAgeMs: RETENTION_DAYS * DAY_MS },
        async record(removal) {
          audit.removing(removal)
          await sink.shipper.ship()
        }
      })
    }
  }
}

export async function openSharedAudit(
  settings: Settings,
  observer: ToolObserver,
  { bucket }: { bucket?: Bucket | undefined },
  logger: Logger
): Promise<AuditLog> {
  return openAuditLog(settings, observer, await openAuditSink(settings, bucket, logger))
}

export function openAuditLog(settings: Settings, observer?: ToolObserver, sink?: AuditSink): AuditLog {
  const secrets = new KnownSecrets()
  secrets.add(SECRET_SETTINGS.map((name) => settings[name]?.toString()))
  const noted = (value: string | undefined) => {
    secrets.add([value])
    return value
  }
  const audit = openAudit({
    dir: dataPaths(settings.DATA_DIR).audit,
    version: packageVersion(),
    maxBytes: settings.AUDIT_MAX_MB * MB,
    maxRouteBytes: settings.AUDIT_ROUTES_MAX_MB * MB,
    maxAgeMs: settings.RETENTION_DAYS * DAY_MS,
    withArguments: settings.AUDIT_ARGUMENTS === 'true',
    secrets,
    observer,
    ...(sink && sinkOptions(sink))
  })
  let pruning: CollectorRounds | undefined
  return {
    audit,
    sink,
    observer,
    share(turn, logger) {
      if (!sink) return
      sink.shipper.start()
      // A new chain records the ends of those that it finds.
      void sink.mirror.sync().catch(() => {})
      pruning = new CollectorRounds(pruner(settings, audit, sink, turn), logger)
      pruning.start()
    },
    async close() {
      pruning?.stop()
      await audit.close()
      await sink?.shipper.stop()
    },
    trackSecrets: (credentials) => ({
      ...credentials,
      source(owner) {
        const source = credentials.source(owner)
        return { ...source, env: (name) => noted(source.env(name)), secret: (name) => noted(source.secret(name)) }
      }
    }),
    registerSecrets({ servers }, credentials) {
      const source = attempt(() => credentials.source())
      for (const entry of source ? servers.values() : []) {
        secrets.add(literalSecrets(entry))
        const texts = entry.kind === 'local' ? entry.env : entry.headers
        // One by one, so that a missing secret does not hide the others.
        for (const [key, text] of Object.entries(texts))
          secrets.add(attempt(() => source && fillPlaceholders(entry.name, { [key]: text }, source).secrets) ?? [])
      }
    }
  }
}

function sinkOptions({ shipper, mirror }: AuditSink) {
  return {
    others: [mirror.dir],
    refusal: () => shipper.refusal,
    isCopied: (path: string, bytes: number) => shipper.isCopied(path, bytes)
  }
}

/** For the page: each owner sees their own rows. */
export function auditReader(
  settings: Settings,
  { audit, sink }: AuditLog,
  ownerOf: (cookies: string | undefined) => string,
  calls: Pick<RecordedCalls, 'about'>
): AuditReader {
  const dir = dataPaths(settings.DATA_DIR).audit
  let readAt = Number.NEGATIVE_INFINITY
  return {
    async read({ from, to, ...query }, allowed) {
      if (sink && performance.now() - readAt > FRESH_MS) {
        // If the bucket is away, the page shows what was read before.
        await sink.mirror.sync().catch(() => {})
        readAt = performance.now()
      }
      return readAudit([dir, ...(sink ? [sink.mirror.dir] : [])], { ...query, ...period(from, to), allowed })
    },
    about: (call) => calls.about(call),
    ownerOf: (cookies) => auditOwner(ownerOf(cookies)),
    get problem() {
      return audit.problem
    }
  }
}

function period(from?: string, to?: string): { since?: number; until?: number } {
  return { ...(from !== undefined && { since: Date.parse(from) }), ...(to !== undefined && { until: Date.parse(to) }) }
}

/** Ignores a missing secret; the server that needs it reports the error. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
