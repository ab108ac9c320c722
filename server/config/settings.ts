/**
 * The table of all settings, with their defaults and formats. Environment, `.env`, flags and help use it.
 * Secret settings have no flag, because command lines are public.
 */

import { APPROVAL_MODES, DEFAULT_MODE } from '../../contract/effects/modes.ts'
import { UPLOAD_MB } from '../../contract/rest.ts'
import { EFFORTS } from '../../contract/session-settings.ts'
import { DEFAULT_UIDS } from '../sandbox/uid-range.ts'
import {
  addressRanges,
  decimal,
  listOf,
  matching,
  oneOf,
  origins,
  type ParseValue,
  text,
  uidRange,
  url,
  wholeNumber as whole
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

type More<T> = Omit<Setting<T>, 'parse' | 'fallback' | 'help'>
const optional = <T>(parse: ParseValue<T>, help: string, more: More<T> = {}): Setting<T> => ({ parse, help, ...more })
const given = <T>(parse: ParseValue<T>, fallback: NoInfer<T>, help: string, more: More<T> = {}) => {
  return { parse, fallback: fallback as T, help, ...more }
}
const secret = (help: string) => optional(text, help, { secret: true })

const address = url('http:', 'https:')
const DNS_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/
const dnsLabel = matching(DNS_NAME, 'lower-case letters, digits, dots and dashes')
const DAY_SECONDS = 86_400
const megabytes = whole(1, 1_048_576)

export const SETTINGS = {
  PORT: given(whole(0, 65_535), 3000, 'port of the web page and the API'),
  HOST: given(text, '127.0.0.1', 'address to listen on; any other than loopback needs AUTH_TOKEN'),
  ALLOWED_ORIGINS: optional(
    origins,
    'sites besides our own page whose pages may use the API and the socket, with session tokens (such as http://localhost:5173)'
  ),
  DATA_DIR: given(text, './data', 'folder for state and saved files'),
  REDIS_URL: optional(url('redis:', 'rediss:'), 'Redis with the shared state of several instances', { secret: true }),
  DEPLOYMENT: given(
    matching(/^[a-z0-9][a-z0-9-]{0,39}$/, 'up to 40 lower-case letters, digits and dashes'),
    'default',
    'name of this deployment; a prefix of its keys in Redis'
  ),
  CHECKPOINT_STORE: optional(
    matching(/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[\w.-]+)*\/?$/, 's3://BUCKET or s3://BUCKET/PREFIX'),
    'bucket for the saved files of sessions, in place of DATA_DIR, so that instances need no shared folder'
  ),
  CHECKPOINT_CACHE_MB: given(megabytes, 1024, 'maximum size of the copies of such files in DATA_DIR'),
  S3_ENDPOINT: optional(address, 'address of the S3 service, if it is not the one of AWS'),
  S3_REGION: given(matching(/^[\w-]{1,40}$/, 'a region such as us-east-1'), 'us-east-1', 'region of the bucket'),
  S3_PATH_STYLE: optional(
    oneOf('true', 'false'),
    'whether the name of the bucket is in the path, not in the host name; true if S3_ENDPOINT is set'
  ),
  AWS_ACCESS_KEY_ID: secret('key for the bucket; without it, the role of the machine or pod is used'),
  AWS_SECRET_ACCESS_KEY: secret('secret of that key'),
  AWS_SESSION_TOKEN: secret('token of that key, if it is a temporary one'),
  MCP_CONFIG: given(text, './mcp.json', 'file with the MCP servers', { flag: 'config' }),
  CREDENTIALS_FILE: optional(text, 'file with the secrets that mcp.json refers to'),
  AUTH_TOKEN: secret('access token that everyone must send; needed if HOST is not loopback'),
  ADMIN_TOKEN: secret('token that is needed to add, change or remove servers over HTTP'),
  SECRETS_KEY: secret('with REDIS_URL: encrypts the logins to MCP servers in Redis, so that all instances use them'),
  SECRETS_KEY_BEFORE: secret('the former SECRETS_KEY, while it is being replaced'),
  TRUST_PROXY: given(
    addressRanges,
    [],
    'addresses of your reverse proxies (comma-separated, CIDR, or loopback); limits then count the clients in their X-Forwarded-For'
  ),
  LLM_PROVIDER: optional(
    oneOf('anthropic', 'claude', 'gemini', 'openai', 'openai-compatible', 'demo'),
    'provider of the default model'
  ),
  LLM_MODEL: optional(text, 'the default model'),
  ANTHROPIC_API_KEY: secret('key for Claude'),
  GEMINI_API_KEY: secret('key for Gemini'),
  OPENAI_API_KEY: secret('key for OpenAI'),
  OPENAI_COMPATIBLE_API_KEY: secret('key for an OpenAI-compatible server, if it needs one'),
  ANTHROPIC_BASE_URL: optional(address, 'address of the API, without /v1'),
  GEMINI_BASE_URL: optional(address, 'address of the API, without a version'),
  OPENAI_BASE_URL: optional(address, 'address of the API, with /v1'),
  OPENAI_COMPATIBLE_BASE_URL: optional(address, 'address of the API, with /v1'),
  EMBEDDING_MODEL: optional(
    matching(
      /^(openai(-compatible)?\/\S{1,200}|local\/minilm)$/,
      'openai/MODEL, openai-compatible/MODEL or local/minilm'
    ),
    'also routes requests by meaning: local/minilm on this machine (see the command embeddings), or a provider, which gets requests and tool descriptions'
  ),
  ROUTING_EXAMPLES: given(
    oneOf('true', 'false'),
    'false',
    'true: the default model writes example requests for each tool; sends it the descriptions and costs tokens'
  ),
  SANDBOX_ENGINE: given(oneOf('docker', 'kubernetes'), 'docker', 'where sandboxes run'),
  KUBECONFIG: optional(
    text,
    'file with the access to the cluster; without it, the service account of our pod, or ~/.kube/config'
  ),
  KUBERNETES_CONTEXT: optional(text, 'context of that file, if it is not the current one'),
  KUBERNETES_NAMESPACE: optional(dnsLabel, 'namespace for the pods of sandboxes; defaults to that of the context'),
  KUBERNETES_IMAGE: optional(text, 'sandbox image in a registry that the cluster can reach, best by digest'),
  KUBERNETES_PULL_SECRETS: optional(listOf(DNS_NAME, 'names of secrets'), 'secrets with which nodes pull the image'),
  KUBERNETES_NODE_SELECTOR: optional(
    listOf(/^[\w./-]+=[\w.-]*$/, 'labels such as pool=sandboxes'),
    'labels of the nodes that run sandboxes'
  ),
  KUBERNETES_TOLERATIONS: optional(
    listOf(/^[\w./-]+(=[\w.-]*)?:(NoSchedule|NoExecute|PreferNoSchedule)$/, 'taints such as sandboxes=true:NoSchedule'),
    'taints of nodes that sandboxes tolerate'
  ),
  KUBERNETES_PRIORITY_CLASS: optional(dnsLabel, 'priority class of sandboxes'),
  KUBERNETES_HOST_USERS: optional(
    oneOf('true', 'false'),
    'false: each pod has its own user namespace, if the cluster can do that'
  ),
  KUBERNETES_SECCOMP_PROFILE: optional(
    text,
    "profile on the nodes (images/seccomp.json), in place of the runtime's own"
  ),
  KUBERNETES_NETWORK_CHECK: given(oneOf('on', 'off'), 'on', 'off: sandboxes are used even if they reach the network'),
  KUBERNETES_CLOSED_TARGETS: optional(
    listOf(/^[\w.:[\]-]+:\d{1,5}$/, 'addresses such as 10.0.0.5:443'),
    'more addresses that a sandbox must not reach; something must listen there'
  ),
  KUBERNETES_SPARE_PODS: given(whole(0, 1000), 0, 'pods that run in advance, shared by all instances'),
  KUBERNETES_START_SECONDS: given(whole(5, 3600), 120, 'how long a pod may take to start'),
  SANDBOX_IMAGE: optional(text, 'your own base image for sandboxes (images/README.md)'),
  SANDBOX_RUNTIME: optional(text, 'container runtime of the engine, e.g. runsc for gVisor'),
  SANDBOX_MEMORY_MB: given(whole(64, 1_048_576), 512, 'memory of one sandbox'),
  SANDBOX_CPUS: given(decimal(0.05, 512), 0.5, 'processors of one sandbox'),
  SANDBOX_PIDS: given(whole(16, 32_768), 128, 'maximum number of processes in one sandbox'),
  SANDBOX_WORKSPACE_MB: given(whole(1, 1_048_576), 256, 'maximum size of the files in one sandbox'),
  SANDBOX_UIDS: given(uidRange, DEFAULT_UIDS, 'user ids for sandboxes, FIRST-LAST; each container gets its own', {
    shown: `${DEFAULT_UIDS.first}-${DEFAULT_UIDS.last}`
  }),
  SANDBOX_NETWORK: given(text, 'none', 'engine network of sandboxes'),
  APPROVAL_MODE: given(
    oneOf(...APPROVAL_MODES),
    DEFAULT_MODE,
    'approval mode of new sessions; preview and review need SANDBOX_NETWORK none'
  ),
  WARM_POOL_SIZE: given(whole(0, 100), 2, 'number of sandboxes kept ready'),
  MAX_SESSIONS: given(whole(1, 10_000), 100, 'maximum number of live sandboxes'),
  MAX_SANDBOXES_PER_OWNER: given(whole(1, 10_000), 20, 'maximum number of live sandboxes per owner'),
  MAX_OWNER_SESSIONS: given(whole(1, 100_000), 500, 'maximum number of sessions per owner'),
  MAX_ADDRESS_SESSIONS: given(whole(1, 1_000_000), 5000, 'maximum number of sessions opened from one address'),
  MAX_STORED_SESSIONS: given(whole(1, 1_000_000), 20_000, 'maximum number of sessions in total'),
  MAX_OWNER_FILES_MB: given(megabytes, 4096, 'maximum size of saved files per owner'),
  MAX_FILES_MB: given(megabytes, 51_200, 'maximum size of saved files in total'),
  MAX_SESSION_LOG_MB: given(megabytes, 64, 'maximum size of one conversation'),
  MAX_OWNER_LOG_MB: given(megabytes, 1024, 'maximum size of conversations per owner'),
  MAX_LOG_MB: given(megabytes, 10_240, 'maximum size of conversations in total'),
  SESSION_IDLE_SECONDS: given(whole(1, DAY_SECONDS), 900, 'idle time after which a sandbox is recycled'),
  JANITOR_INTERVAL_SECONDS: given(whole(1, 3600), 60, 'time between clean-ups'),
  PAUSE_AFTER_SECONDS: given(whole(1, DAY_SECONDS), 30, 'time after which a sandbox without an open tab is paused'),
  RETENTION_DAYS: given(whole(1, 3650), 30, 'how long sessions and files are kept'),
  HISTORY_MB: given(whole(1, 1_048_576), 256, "maximum size of the earlier versions of one session's files"),
  MIN_FREE_MB: given(whole(0, 1_048_576), 100, 'minimum free space in DATA_DIR; below it, /readyz answers 503'),
  MESSAGES_PER_MINUTE: given(whole(1, 100_000), 30, 'maximum number of messages per session'),
  COMMANDS_PER_MINUTE: given(whole(1, 100_000), 300, 'maximum number of actions of any kind per session'),
  REQUESTS_PER_MINUTE: given(
    whole(1, 1_000_000),
    600,
    'maximum number of HTTP requests per browser, or per address for clients without a browser'
  ),
  CONNECTIONS_PER_MINUTE: given(
    whole(1, 1_000_000),
    600,
    'maximum number of new live connections, counted like requests'
  ),
  MAX_CONNECTIONS: given(whole(1, 100_000), 200, 'maximum number of open live connections, counted like requests'),
  MAX_PENDING_CONNECTIONS: given(
    whole(1, 10_000),
    50,
    'maximum number of live connections per address that have not logged in; one more closes the oldest'
  ),
  WRONG_TOKENS_PER_MINUTE: given(
    whole(1, 10_000),
    20,
    'maximum number of wrong access tokens per address; the right token is always accepted'
  ),
  MAX_UPLOAD_MB: given(whole(1, 1024), UPLOAD_MB, 'maximum size of an uploaded file'),
  MAX_STEPS: given(whole(1, 10_000), 50, 'maximum number of model steps in one turn'),
  MAX_OUTPUT_TOKENS: optional(whole(1, 10_000_000), 'maximum output of one model step'),
  MAX_CHAT_TOOLS: given(
    whole(8, 10_000),
    40,
    'maximum number of tools that a model is offered in the chat; it finds and runs the others through two tools'
  ),
  GENERATED_TITLES: given(
    oneOf('true', 'false'),
    'true',
    'whether the model of a session gives it a title after its first answer, with one small request'
  ),
  REASONING_EFFORT: given(
    oneOf(...EFFORTS),
    'medium',
    'how much models think before they answer, where they can: off, low, medium or high'
  ),
  MAX_HISTORY_TOKENS: optional(whole(1000, 100_000_000), 'maximum history sent to the model'),
  MODEL_PRICES: optional(text, 'JSON file with what models cost and how much they can read (docs/guides/models.md)'),
  MAX_SESSION_TOKENS: optional(
    whole(1000, 1_000_000_000),
    'spending limit of a session; above it, the person is asked before the model continues'
  ),
  APPROVAL_WAIT_SECONDS: given(whole(1, DAY_SECONDS), 300, 'how long a gateway call waits for approval'),
  CHANGED_TOOLS: given(
    oneOf('flag', 'ask'),
    'flag',
    'ask: gateway calls of a tool whose definition changed need approval, unless a rule allows them'
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    address,
    'OpenTelemetry collector for spans of calls (OTLP over HTTP, without /v1/traces)'
  ),
  AUDIT_ARGUMENTS: given(
    oneOf('true', 'false'),
    'false',
    'true: the audit log keeps arguments and requests, not only their hashes'
  ),
  AUDIT_LAG_SECONDS: given(
    whole(10, DAY_SECONDS),
    900,
    'with CHECKPOINT_STORE: how long the copy of the audit log in the bucket may be behind; after that, no calls are made'
  ),
  AUDIT_MAX_MB: given(megabytes, 256, 'maximum size of the audit log for calls'),
  AUDIT_ROUTES_MAX_MB: given(megabytes, 64, 'maximum size of the audit log for routing decisions'),
  MCP_REQUESTS_PER_MINUTE: given(
    whole(1, 10_000_000),
    1200,
    'maximum number of requests to /mcp per client; browsers without sessions share five times as many per address'
  ),
  GATEWAY_EXPOSE: optional(
    text,
    "all, or the name of a server: clients see its own tools instead of the gateway's four",
    { flag: 'expose' }
  ),
  METRICS_FILE: optional(text, 'file for the metrics of the stdio gateway, as text for Prometheus'),
  GATEWAY_CODE: given(
    oneOf('true', 'false'),
    'false',
    'true: clients also get run_code, which runs a program in a sandbox (experimental; needs a container engine or a cluster)'
  ),
  CHAT_CODE: given(oneOf('true', 'false'), 'false', 'true: models get run_code, which runs a program that calls tools'),
  LOG_LEVEL: given(oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', 'how much is logged')
} as const

export type SettingName = keyof typeof SETTINGS

export const SECRET_SETTINGS = (Object.keys(SETTINGS) as SettingName[]).filter((name) => {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.secret === true
})
/**
 * Variables of the environment that libraries of ours use as secrets, or to find one: the role of the bucket, and the way to the
 * collector of traces.
 */
const LIBRARY_SECRETS = [
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  ...['', '_TRACES', '_METRICS', '_LOGS'].flatMap((signal) =>
    ['HEADERS', 'CLIENT_KEY', 'CLIENT_CERTIFICATE'].map((kind) => `OTEL_EXPORTER_OTLP${signal}_${kind}`)
  )
]
/** The only list of secrets in our environment. No server gets one of them through a placeholder. */
export const OUR_SECRETS: readonly string[] = [...SECRET_SETTINGS, ...LIBRARY_SECRETS]

type ValueOf<S> = S extends { parse: ParseValue<infer T> } ? T : never
type IsGiven<S> = S extends { fallback: unknown } ? true : false

/** Settings with a default are never undefined. */
export type Settings = {
  readonly [K in SettingName]: IsGiven<(typeof SETTINGS)[K]> extends true
    ? ValueOf<(typeof SETTINGS)[K]>
    : ValueOf<(typeof SETTINGS)[K]> | undefined
} & {
  /** Set if the person did not name the registry: any program could have put it, or a `.env` that names it, into the working folder. */
  readonly registryIsFound?: boolean
  /** Where accepted entries are recorded, if not in DATA_DIR: any program could have put a folder that nobody named there. */
  readonly grantsDir?: string
  /** Set if only a `.env` names the kubeconfig, and with it what programs are run. */
  readonly kubeconfigIsFound?: boolean
}

export function flagOf(name: SettingName): string | undefined {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.secret ? undefined : (setting.flag ?? name.toLowerCase().replaceAll('_', '-'))
}
