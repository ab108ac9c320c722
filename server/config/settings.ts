/**
 * Every setting with its name, default and form: the one table that environment, `.env`, flags, help and documentation share.
 * A setting marked secret has no flag, because command lines are public.
 */

import { UPLOAD_MB } from '../../contract/rest.ts'
import { DEFAULT_UIDS } from '../sandbox/uid-range.ts'
import {
  addressRanges,
  decimal,
  matching,
  oneOf,
  type ParseValue,
  text,
  uidRange,
  url,
  wholeNumber
} from './parse-value.ts'

interface Setting<T> {
  parse: ParseValue<T>
  fallback?: T
  /** The default as the help shows it, where the value is no plain text. */
  shown?: string
  secret?: true
  /** Where the flag is not the kebab-case name. */
  flag?: string
  help: string
}

const define = <T>(setting: Setting<T>): Setting<T> => setting
const given = <T>(setting: Setting<T> & { fallback: T }): Setting<T> & { fallback: T } => setting
const secret = (help: string) => define({ parse: text, secret: true, help })
const DAY_SECONDS = 86_400
const megabytes = wholeNumber(1, 1_048_576)

export const SETTINGS = {
  PORT: given({ parse: wholeNumber(0, 65_535), fallback: 3000, help: 'port of the web page and API' }),
  HOST: given({
    parse: text,
    fallback: '127.0.0.1',
    help: 'address to listen on; other than loopback needs AUTH_TOKEN'
  }),
  DATA_DIR: given({ parse: text, fallback: './data', help: 'folder for state and checkpoints' }),
  REDIS_URL: define({ parse: url('redis:', 'rediss:'), secret: true, help: 'shared state for several instances' }),
  DEPLOYMENT: given({
    parse: matching(/^[a-z0-9][a-z0-9-]{0,39}$/, 'up to 40 lower-case letters, digits and dashes'),
    fallback: 'default',
    help: 'name of this deployment, which its keys in Redis carry'
  }),
  MCP_CONFIG: given({ parse: text, fallback: './mcp.json', flag: 'config', help: 'file with the MCP servers' }),
  CREDENTIALS_FILE: define({ parse: text, help: 'file with the secrets that mcp.json refers to' }),
  AUTH_TOKEN: secret('asked of everyone when set; needed when HOST is not loopback'),
  ADMIN_TOKEN: secret('asked of whoever adds, changes or removes servers over HTTP'),
  TRUST_PROXY: given({
    parse: addressRanges,
    fallback: [],
    help: 'addresses of proxies in front (commas, CIDR, or loopback): their X-Forwarded-For says whom limits count'
  }),
  LLM_PROVIDER: define({
    parse: oneOf('anthropic', 'claude', 'gemini', 'openai', 'openai-compatible', 'demo'),
    help: 'provider of the default model'
  }),
  LLM_MODEL: define({ parse: text, help: 'default model' }),
  ANTHROPIC_API_KEY: secret('key for Claude'),
  GEMINI_API_KEY: secret('key for Gemini'),
  OPENAI_API_KEY: secret('key for OpenAI'),
  OPENAI_COMPATIBLE_API_KEY: secret('key for an OpenAI-compatible server, where it wants one'),
  ANTHROPIC_BASE_URL: define({ parse: url('http:', 'https:'), help: 'without /v1' }),
  GEMINI_BASE_URL: define({ parse: url('http:', 'https:'), help: 'without version' }),
  OPENAI_BASE_URL: define({ parse: url('http:', 'https:'), help: 'with /v1' }),
  OPENAI_COMPATIBLE_BASE_URL: define({ parse: url('http:', 'https:'), help: 'with /v1' }),
  EMBEDDING_MODEL: define({
    parse: matching(/^openai(-compatible)?\/\S{1,200}$/, 'openai/MODEL or openai-compatible/MODEL'),
    help: 'routes requests by meaning too, in other languages: sends them and tool descriptions to that provider'
  }),
  ROUTING_EXAMPLES: given({
    parse: oneOf('true', 'false'),
    fallback: 'false',
    help: 'true: the default model writes example requests for each tool, once: sends it the descriptions, costs tokens'
  }),
  SANDBOX_IMAGE: define({ parse: text, help: 'own image as the base of the sandbox (images/README.md)' }),
  SANDBOX_RUNTIME: define({ parse: text, help: "the engine's runtime, e.g. runsc for gVisor" }),
  SANDBOX_MEMORY_MB: given({ parse: wholeNumber(64, 1_048_576), fallback: 512, help: 'memory of a sandbox' }),
  SANDBOX_CPUS: given({ parse: decimal(0.05, 512), fallback: 0.5, help: 'processors of a sandbox' }),
  SANDBOX_PIDS: given({ parse: wholeNumber(16, 32_768), fallback: 128, help: 'processes in a sandbox' }),
  SANDBOX_WORKSPACE_MB: given({ parse: wholeNumber(1, 1_048_576), fallback: 256, help: 'files of a sandbox' }),
  SANDBOX_UIDS: given({
    parse: uidRange,
    fallback: DEFAULT_UIDS,
    shown: `${DEFAULT_UIDS.first}-${DEFAULT_UIDS.last}`,
    help: 'user ids of sandboxes, FIRST-LAST; each container gets one to itself'
  }),
  SANDBOX_NETWORK: given({ parse: text, fallback: 'none', help: 'engine network of a sandbox' }),
  WARM_POOL_SIZE: given({ parse: wholeNumber(0, 100), fallback: 2, help: 'sandboxes kept ready' }),
  MAX_SESSIONS: given({ parse: wholeNumber(1, 10_000), fallback: 100, help: 'live sandboxes at most' }),
  MAX_SANDBOXES_PER_OWNER: given({
    parse: wholeNumber(1, 10_000),
    fallback: 20,
    help: 'live sandboxes of one owner at most'
  }),
  MAX_OWNER_SESSIONS: given({ parse: wholeNumber(1, 100_000), fallback: 500, help: 'sessions of one owner at most' }),
  MAX_STORED_SESSIONS: given({ parse: wholeNumber(1, 1_000_000), fallback: 20_000, help: 'sessions of all at most' }),
  MAX_OWNER_FILES_MB: given({ parse: megabytes, fallback: 4096, help: 'saved files of one owner at most' }),
  MAX_FILES_MB: given({ parse: megabytes, fallback: 51_200, help: 'saved files of all at most' }),
  MAX_SESSION_LOG_MB: given({ parse: megabytes, fallback: 64, help: 'one conversation at most' }),
  MAX_OWNER_LOG_MB: given({ parse: megabytes, fallback: 1024, help: 'conversations of one owner at most' }),
  MAX_LOG_MB: given({ parse: megabytes, fallback: 10_240, help: 'conversations of all at most' }),
  SESSION_IDLE_SECONDS: given({
    parse: wholeNumber(1, DAY_SECONDS),
    fallback: 900,
    help: 'idle time before recycling'
  }),
  JANITOR_INTERVAL_SECONDS: given({ parse: wholeNumber(1, 3600), fallback: 60, help: 'time between clean-ups' }),
  PAUSE_AFTER_SECONDS: given({ parse: wholeNumber(1, DAY_SECONDS), fallback: 30, help: 'pause without a tab open' }),
  RETENTION_DAYS: given({ parse: wholeNumber(1, 3650), fallback: 30, help: 'how long sessions and files are kept' }),
  MIN_FREE_MB: given({
    parse: wholeNumber(0, 1_048_576),
    fallback: 100,
    help: 'free space in DATA_DIR below which /readyz says 503'
  }),
  MESSAGES_PER_MINUTE: given({ parse: wholeNumber(1, 100_000), fallback: 30, help: 'messages in one session' }),
  COMMANDS_PER_MINUTE: given({ parse: wholeNumber(1, 100_000), fallback: 300, help: 'all actions in one session' }),
  REQUESTS_PER_MINUTE: given({
    parse: wholeNumber(1, 1_000_000),
    fallback: 600,
    help: 'HTTP requests of one browser, or of the clients without one at an address'
  }),
  CONNECTIONS_PER_MINUTE: given({
    parse: wholeNumber(1, 1_000_000),
    fallback: 600,
    help: 'new live connections, counted like requests'
  }),
  MAX_CONNECTIONS: given({
    parse: wholeNumber(1, 100_000),
    fallback: 200,
    help: 'open live connections, counted like requests'
  }),
  MAX_PENDING_CONNECTIONS: given({
    parse: wholeNumber(1, 10_000),
    fallback: 50,
    help: 'live connections of one address on which nobody has come in yet; one more closes the oldest'
  }),
  WRONG_TOKENS_PER_MINUTE: given({
    parse: wholeNumber(1, 10_000),
    fallback: 20,
    help: 'wrong access tokens from one address; the right one is always accepted'
  }),
  MAX_UPLOAD_MB: given({ parse: wholeNumber(1, 1024), fallback: UPLOAD_MB, help: 'size of one uploaded file' }),
  MAX_STEPS: given({ parse: wholeNumber(1, 10_000), fallback: 50, help: 'model steps in one turn' }),
  MAX_OUTPUT_TOKENS: define({ parse: wholeNumber(1, 10_000_000), help: 'output of one model step at most' }),
  MAX_HISTORY_TOKENS: define({ parse: wholeNumber(1000, 100_000_000), help: 'history given to the model at most' }),
  MAX_SESSION_TOKENS: define({
    parse: wholeNumber(1000, 1_000_000_000),
    help: 'asks the human when a session used more'
  }),
  APPROVAL_WAIT_SECONDS: given({
    parse: wholeNumber(1, DAY_SECONDS),
    fallback: 300,
    help: "how long a gateway call waits for a human's answer"
  }),
  CHANGED_TOOLS: given({
    parse: oneOf('flag', 'ask'),
    fallback: 'flag',
    help: 'ask: gateway calls of a tool whose definition changed wait for a human, unless a rule allows them'
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: define({
    parse: url('http:', 'https:'),
    help: 'OpenTelemetry collector (OTLP over HTTP, without /v1/traces) that spans of calls are sent to'
  }),
  AUDIT_ARGUMENTS: given({
    parse: oneOf('true', 'false'),
    fallback: 'false',
    help: 'true: the audit log keeps arguments and requests, not only their hash'
  }),
  AUDIT_MAX_MB: given({ parse: megabytes, fallback: 256, help: 'audit log of calls at most' }),
  AUDIT_ROUTES_MAX_MB: given({ parse: megabytes, fallback: 64, help: 'audit log of routing decisions at most' }),
  MCP_REQUESTS_PER_MINUTE: given({
    parse: wholeNumber(1, 10_000_000),
    fallback: 1200,
    help: 'requests of one client to /mcp; five times as many of one address'
  }),
  GATEWAY_EXPOSE: define({ parse: text, flag: 'expose', help: 'all, or a server: pass its tools through as they are' }),
  LOG_LEVEL: given({
    parse: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    fallback: 'info',
    help: 'log level'
  })
} as const

export type SettingName = keyof typeof SETTINGS
type ValueOf<S> = S extends { parse: ParseValue<infer T> } ? T : never
type IsGiven<S> = S extends { fallback: unknown } ? true : false

/** Settings with a default are always there, the others may be undefined. */
export type Settings = {
  readonly [K in SettingName]: IsGiven<(typeof SETTINGS)[K]> extends true
    ? ValueOf<(typeof SETTINGS)[K]>
    : ValueOf<(typeof SETTINGS)[K]> | undefined
}

export function flagOf(name: SettingName): string | undefined {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.secret ? undefined : (setting.flag ?? name.toLowerCase().replaceAll('_', '-'))
}
