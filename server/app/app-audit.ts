/** The audit log of this process, and the secrets that must not get into it. */
import { type Audit, auditOwner, openAudit } from '../audit/audit.ts'
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
import type { RecordedCalls } from '../sessions/feed/recorded-calls.ts'
import { dataPaths } from './data-paths.ts'

export interface AuditLog {
  audit: Audit
  /** Observer for metrics. */
  observer: ToolObserver | undefined
  /** Values that it returns are redacted from then on. */
  trackSecrets(credentials: Credentials): Credentials
  /** The secrets that the registry refers to, as far as they have values now. */
  registerSecrets(registry: Registry, credentials: Credentials): void
}

const DAY_MS = 86_400_000
const MB = 1024 * 1024

export function openAuditLog(settings: Settings, observer?: ToolObserver): AuditLog {
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
    observer
  })
  return {
    audit,
    observer,
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

/** For the page: each owner sees their own rows. */
export function auditReader(
  settings: Settings,
  { audit }: AuditLog,
  ownerOf: (cookies: string | undefined) => string,
  calls: Pick<RecordedCalls, 'about'>
): AuditReader {
  const dir = dataPaths(settings.DATA_DIR).audit
  return {
    read: ({ from, to, ...query }, allowed) => readAudit(dir, { ...query, ...period(from, to), allowed }),
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
