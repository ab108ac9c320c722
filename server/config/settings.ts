/**
 * The table of all settings, with their defaults and formats. Environment, `.env`, flags and help use it.
 * Secret settings have no flag, because command lines are public.
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
  /** The default as the help shows it, if the value is not plain text. */
  shown?: string
  secret?: true
  /** The flag, if it is not the name in kebab-case. */
  flag?: string
  help: string
}

const define = <T>(setting: Setting<T>): Setting<T> => setting
const given = <T>(setting: Setting<T> & { fallback: T }): Setting<T> & { fallback: T } => setting
const secret = (help: string) => define({ parse: text, secret: true, help })
const DAY_SECONDS = 86_400
const megabytes = wholeNumber(1, 1_048_576)

export const SETTINGS = {
  PORT: given({ parse: wholeNumber(0, 65_535), fallback: 3000, help: 'port of the web page and the API' }),
  HOST: given({
    parse: text,
    fallback: '127.0.0.1',
    help: 'address to listen on; any other than loopback needs AUTH_TOKEN'
  }),
  DATA_DIR: given({ parse: text, fallback: './data', help: 'folder for state and saved files' }),
  REDIS_URL: define({
    parse: url('redis:', 'rediss:'),
    secret: true,
    help: 'Redis with the shared state of several instances'
  }),
  DEPLOYMENT: given({
    parse: matching(/^[a-z0-9][a-z0-9-]{0,39}$/, 'up to 40 lower-case letters, digits and dashes'),
    fallback: 'default',
    help: 'name of this deployment; a prefix of its keys in Redis'
  }),
  MCP_CONFIG: given({ parse: text, fallback: './mcp.json', flag: 'config', help: 'file with the MCP servers' }),
  CREDENTIALS_FILE: define({ parse: text, help: 'file with the secrets that mcp.json refers to' }),
  AUTH_TOKEN: secret('access token that everyone must send; needed if HOST is not loopback'),
  ADMIN_TOKEN: secret('token that is needed to add, change or remove servers over HTTP'),
  TRUST_PROXY: given({
    parse: addressRanges,
    fallback: [],
    help: 'addresses of your reverse proxies (comma-separated, CIDR, or loopback); limits then count the clients in their X-Forwarded-For'
  }),
  LLM_PROVIDER: define({
    parse: oneOf('anthropic', 'claude', 'gemini', 'openai', 'openai-compatible', 'demo'),
    help: 'provider of the default model'
  }),
  LLM_MODEL: define({ parse: text, help: 'the default model' }),
  ANTHROPIC_API_KEY: secret('key for Claude'),
  GEMINI_API_KEY: secret('key for Gemini'),
  OPENAI_API_KEY: secret('key for OpenAI'),
  OPENAI_COMPATIBLE_API_KEY: secret('key for an OpenAI-compatible server, if it needs one'),
  ANTHROPIC_BASE_URL: define({ parse: url('http:', 'https:'), help: 'address of the API, without /v1' }),
  GEMINI_BASE_URL: define({ parse: url('http:', 'https:'), help: 'address of the API, without a version' }),
  OPENAI_BASE_URL: define({ parse: url('http:', 'https:'), help: 'address of the API, with /v1' }),
  OPENAI_COMPATIBLE_BASE_URL: define({ parse: url('http:', 'https:'), help: 'address of the API, with /v1' }),
  EMBEDDING_MODEL: define({
    parse: matching(/^openai(-compatible)?\/\S{1,200}$/, 'openai/MODEL or openai-compatible/MODEL'),
    help: 'also routes requests by meaning and in other languages; sends requests and tool descriptions to that provider'
  }),
  ROUTING_EXAMPLES: given({
    parse: oneOf('true', 'false'),
    fallback: 'false',
    help: 'true: the default model writes example requests for each tool; sends it the descriptions and costs tokens'
  }),
  SANDBOX_IMAGE: define({ parse: text, help: 'your own base image for sandboxes (images/README.md)' }),
  SANDBOX_RUNTIME: define({ parse: text, help: 'container runtime of the engine, e.g. runsc for gVisor' }),
  SANDBOX_MEMORY_MB: given({ parse: wholeNumber(64, 1_048_576), fallback: 512, help: 'memory of one sandbox' }),
  SANDBOX_CPUS: given({ parse: decimal(0.05, 512), fallback: 0.5, help: 'processors of one sandbox' }),
  SANDBOX_PIDS: given({
    parse: wholeNumber(16, 32_768),
    fallback: 128,
    help: 'maximum number of processes in one sandbox'
  }),
  SANDBOX_WORKSPACE_MB: given({
    parse: wholeNumber(1, 1_048_576),
    fallback: 256,
    help: 'maximum size of the files in one sandbox'
  }),
  SANDBOX_UIDS: given({
    parse: uidRange,
    fallback: DEFAULT_UIDS,
    shown: `${DEFAULT_UIDS.first}-${DEFAULT_UIDS.last}`,
    help: 'user ids for sandboxes, FIRST-LAST; each container gets its own'
  }),
  SANDBOX_NETWORK: given({ parse: text, fallback: 'none', help: 'engine network of sandboxes' }),
  WARM_POOL_SIZE: given({ parse: wholeNumber(0, 100), fallback: 2, help: 'number of sandboxes kept ready' }),
  MAX_SESSIONS: given({ parse: wholeNumber(1, 10_000), fallback: 100, help: 'maximum number of live sandboxes' }),
  MAX_SANDBOXES_PER_OWNER: given({
    parse: wholeNumber(1, 10_000),
    fallback: 20,
    help: 'maximum number of live sandboxes per owner'
  }),
  MAX_OWNER_SESSIONS: given({
    parse: wholeNumber(1, 100_000),
    fallback: 500,
    help: 'maximum number of sessions per owner'
  }),
  MAX_STORED_SESSIONS: given({
    parse: wholeNumber(1, 1_000_000),
    fallback: 20_000,
    help: 'maximum number of sessions in total'
  }),
  MAX_OWNER_FILES_MB: given({ parse: megabytes, fallback: 4096, help: 'maximum size of saved files per owner' }),
  MAX_FILES_MB: given({ parse: megabytes, fallback: 51_200, help: 'maximum size of saved files in total' }),
  MAX_SESSION_LOG_MB: given({ parse: megabytes, fallback: 64, help: 'maximum size of one conversation' }),
  MAX_OWNER_LOG_MB: given({ parse: megabytes, fallback: 1024, help: 'maximum size of conversations per owner' }),
  MAX_LOG_MB: given({ parse: megabytes, fallback: 10_240, help: 'maximum size of conversations in total' }),
  SESSION_IDLE_SECONDS: given({
    parse: wholeNumber(1, DAY_SECONDS),
    fallback: 900,
    help: 'idle time after which a sandbox is recycled'
  }),
  JANITOR_INTERVAL_SECONDS: given({ parse: wholeNumber(1, 3600), fallback: 60, help: 'time between clean-ups' }),
  PAUSE_AFTER_SECONDS: given({
    parse: wholeNumber(1, DAY_SECONDS),
    fallback: 30,
    help: 'time after which a sandbox without an open tab is paused'
  }),
  RETENTION_DAYS: given({ parse: wholeNumber(1, 3650), fallback: 30, help: 'how long sessions and files are kept' }),
  MIN_FREE_MB: given({
    parse: wholeNumber(0, 1_048_576),
    fallback: 100,
    help: 'minimum free space in DATA_DIR; below it, /readyz answers 503'
  }),
  MESSAGES_PER_MINUTE: given({
    parse: wholeNumber(1, 100_000),
    fallback: 30,
    help: 'maximum number of messages per session'
  }),
  COMMANDS_PER_MINUTE: given({
    parse: wholeNumber(1, 100_000),
    fallback: 300,
    help: 'maximum number of actions of any kind per session'
  }),
  REQUESTS_PER_MINUTE: given({
    parse: wholeNumber(1, 1_000_000),
    fallback: 600,
    help: 'maximum number of HTTP requests per browser, or per address for clients without a browser'
  }),
  CONNECTIONS_PER_MINUTE: given({
    parse: wholeNumber(1, 1_000_000),
    fallback: 600,
    help: 'maximum number of new live connections, counted like requests'
  }),
  MAX_CONNECTIONS: given({
    parse: wholeNumber(1, 100_000),
    fallback: 200,
    help: 'maximum number of open live connections, counted like requests'
  }),
  MAX_PENDING_CONNECTIONS: given({
    parse: wholeNumber(1, 10_000),
    fallback: 50,
    help: 'maximum number of live connections per address that have not logged in; one more closes the oldest'
  }),
  WRONG_TOKENS_PER_MINUTE: given({
    parse: wholeNumber(1, 10_000),
    fallback: 20,
    help: 'maximum number of wrong access tokens per address; the right token is always accepted'
  }),
  MAX_UPLOAD_MB: given({ parse: wholeNumber(1, 1024), fallback: UPLOAD_MB, help: 'maximum size of an uploaded file' }),
  MAX_STEPS: given({ parse: wholeNumber(1, 10_000), fallback: 50, help: 'maximum number of model steps in one turn' }),
  MAX_OUTPUT_TOKENS: define({ parse: wholeNumber(1, 10_000_000), help: 'maximum output of one model step' }),
  MAX_HISTORY_TOKENS: define({ parse: wholeNumber(1000, 100_000_000), help: 'maximum history sent to the model' }),
  MAX_SESSION_TOKENS: define({
    parse: wholeNumber(1000, 1_000_000_000),
    help: 'spending limit of a session; above it, the person is asked before the model continues'
  }),
  APPROVAL_WAIT_SECONDS: given({
    parse: wholeNumber(1, DAY_SECONDS),
    fallback: 300,
    help: 'how long a gateway call waits for approval'
  }),
  CHANGED_TOOLS: given({
    parse: oneOf('flag', 'ask'),
    fallback: 'flag',
    help: 'ask: gateway calls of a tool whose definition changed need approval, unless a rule allows them'
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: define({
    parse: url('http:', 'https:'),
    help: 'OpenTelemetry collector for spans of calls (OTLP over HTTP, without /v1/traces)'
  }),
  AUDIT_ARGUMENTS: given({
    parse: oneOf('true', 'false'),
    fallback: 'false',
    help: 'true: the audit log keeps arguments and requests, not only their hashes'
  }),
  AUDIT_MAX_MB: given({ parse: megabytes, fallback: 256, help: 'maximum size of the audit log for calls' }),
  AUDIT_ROUTES_MAX_MB: given({
    parse: megabytes,
    fallback: 64,
    help: 'maximum size of the audit log for routing decisions'
  }),
  MCP_REQUESTS_PER_MINUTE: given({
    parse: wholeNumber(1, 10_000_000),
    fallback: 1200,
    help: 'maximum number of requests to /mcp per client; five times as many per address'
  }),
  GATEWAY_EXPOSE: define({
    parse: text,
    flag: 'expose',
    help: "all, or the name of a server: clients see its own tools instead of the gateway's four"
  }),
  LOG_LEVEL: given({
    parse: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    fallback: 'info',
    help: 'how much is logged'
  })
} as const

export type SettingName = keyof typeof SETTINGS
type ValueOf<S> = S extends { parse: ParseValue<infer T> } ? T : never
type IsGiven<S> = S extends { fallback: unknown } ? true : false

/** Settings with a default are never undefined. */
export type Settings = {
  readonly [K in SettingName]: IsGiven<(typeof SETTINGS)[K]> extends true
    ? ValueOf<(typeof SETTINGS)[K]>
    : ValueOf<(typeof SETTINGS)[K]> | undefined
}

export function flagOf(name: SettingName): string | undefined {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.secret ? undefined : (setting.flag ?? name.toLowerCase().replaceAll('_', '-'))
}
