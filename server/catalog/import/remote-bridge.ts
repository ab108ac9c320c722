import { isRecord } from '../../lib/is-record.ts'

type Raw = Record<string, unknown>

/** Flags of mcp-remote that say nothing about the remote server itself. */
const HARMLESS = new Set(['--allow-http', '--debug', '--silent', '--enable-proxy'])

/**
 * `npx mcp-remote URL --header "Authorization:${AUTH}"` starts a local bridge to a remote server, which fills in the header from
 * its own variables. Here this is a remote server with a header. Returns undefined if it is no such bridge, has no header, or has a
 * flag that only the bridge understands; it then stays a command.
 */
export function unwrapBridge(raw: Raw): { raw: Raw; notes: string[] } | undefined {
  const { command, args, env, cwd: _, ...rest } = raw
  if (typeof command !== 'string' || !Array.isArray(args) || !args.every((word) => typeof word === 'string')) return
  const words: string[] = [command, ...args]
  const at = words.findIndex((word) => /(^|[/\\])mcp-remote(\.cmd|@[^/\\]*)?$/.test(word))
  if (at < 0) return
  const call = readCall(words.slice(at + 1))
  if (!call || call.headers.length === 0) return
  const variables = isRecord(env) ? env : {}
  const used = new Set<string>()
  const headers = call.headers.map(([name, text]): [string, string] => {
    const filled = text.replace(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g, (whole, variable: string) => {
      const value = Object.hasOwn(variables, variable) ? variables[variable] : undefined
      if (value === undefined) return whole
      used.add(variable)
      return String(value)
    })
    return [name, filled.trim()]
  })
  const unused = Object.keys(variables).filter((name) => !used.has(name))
  return {
    raw: {
      ...rest,
      url: call.url,
      headers: Object.fromEntries(headers),
      ...(call.isSse ? { type: 'sse' } : { type: 'http' })
    },
    notes: [
      'the bridge mcp-remote is not needed: this is taken over as a remote server with headers',
      ...(unused.length > 0 ? [`"env" (${unused.join(', ')}) is not taken over: it was for the bridge`] : [])
    ]
  }
}

interface BridgeCall {
  url: string
  headers: [string, string][]
  isSse: boolean
}

function readCall(words: string[]): BridgeCall | undefined {
  const [url, ...rest] = words
  if (url === undefined || !/^https?:\/\//.test(url)) return
  const headers: [string, string][] = []
  let transport = ''
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ''
    const next = rest[at + 1] ?? ''
    const isPort = at === 0 && /^\d+$/.test(word)
    if (HARMLESS.has(word) || isPort) continue
    const colon = next.indexOf(':')
    if (word === '--header' && colon > 0) headers.push([next.slice(0, colon).trim(), next.slice(colon + 1)])
    else if (word === '--transport') transport = next
    else return
    at++
  }
  const isSse = transport === '' ? new URL(url).pathname.endsWith('/sse') : transport.startsWith('sse')
  return { url, headers, isSse }
}
