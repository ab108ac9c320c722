export const DEFAULT_DEPLOYMENT = 'default'

/** Keeps two deployments on one Redis apart. */
export function deploymentPrefix(deployment: string): string {
  return `mcpo/${deployment}:`
}

export interface RedisKeys {
  deployment: string
  origin: string
  instances: string
  /** Instances that have ended, by the time of their end. */
  ended: string
  /** How many forks each instance has. */
  forks: string
  /** All session ids with score 0, so that they are in lexical order. */
  index: string
  /** Ids of live sessions, by activeAt. */
  live: string
  epochFloor: string
  /** `${sessionPrefix}${id}${sessionSuffix}` is the key of a session's hash, for scripts that look up sessions themselves. */
  sessionPrefix: string
  sessionSuffix: string
  session(id: string): string
  /** Bytes of each session's events, by id. */
  logSizes: string
  events(id: string): string
  eventKeys(id: string): string
  /** Large fields of the events, by hash. The name sorts after `events`: a backup that copies both in order misses none. */
  largeValues(id: string): string
  facts(space: string): string
}

export const LARGE_VALUES = ':large-values'

export function redisKeys(prefix: string): RedisKeys {
  return {
    deployment: `${prefix}deployment-id`,
    origin: `${prefix}origin`,
    instances: `${prefix}instances`,
    ended: `${prefix}ended-instances`,
    forks: `${prefix}forks`,
    index: `${prefix}sessions`,
    live: `${prefix}live`,
    epochFloor: `${prefix}epoch-floor`,
    logSizes: `${prefix}log-sizes`,
    sessionPrefix: `${prefix}{`,
    sessionSuffix: '}:session',
    session: (id) => `${prefix}{${id}}:session`,
    events: (id) => `${prefix}{${id}}:events`,
    eventKeys: (id) => `${prefix}{${id}}:event-keys`,
    largeValues: (id) => `${prefix}{${id}}${LARGE_VALUES}`,
    facts: (space) => `${prefix}facts:${space}`
  }
}
