/**
 * Finds the server of a URI. URIs stay unchanged, because tools return them in their results; only if two servers have the same
 * one, the second is shown under another URI. Owns that choice and what was learnt from lists.
 */
import type { Target } from './exposed-names.ts'
import { templateMatcher } from './template-matcher.ts'

const ALIAS = 'mcp-orchestrator://'
const MAX_KNOWN = 20_000
const MAX_KNOWN_CHARS = 2000
const MAX_TEMPLATES = 1000
/** Limits the work for a URI that nobody has listed: every template is tried. */
const MAX_TEMPLATES_OF_ONE = 100
const BEGINS_WITH_SCHEME = /^[a-z][a-z0-9+.-]*:/i

export class ExposedResources {
  readonly #only: string | undefined
  readonly #owners = new Map<string, string>()
  /** URIs in results of tools. Anyone can mention any URI, so they count only if nobody has listed it. */
  readonly #mentioned = new Map<string, string>()
  readonly #templates = new Map<string, { server: string; matches(uri: string): boolean }>()

  constructor(only: string | undefined) {
    this.#only = only
  }

  /** The URI under which a listed resource is shown; the first server that lists a URI keeps it. */
  of(server: string, uri: string): string {
    if (this.#only !== undefined) return uri
    const owner = this.#owners.get(uri)
    const isShort = uri.length <= MAX_KNOWN_CHARS
    if (owner === undefined && isShort && this.#owners.size < MAX_KNOWN) this.#owners.set(uri, server)
    return owner === undefined || owner === server
      ? uri
      : `${ALIAS}${encodeURIComponent(server)}/${encodeURIComponent(uri)}`
  }

  /** A tool may link to a resource that is in no list. */
  mention(server: string, uri: string): void {
    if (this.#only !== undefined || this.#mentioned.has(uri)) return
    if (uri.length <= MAX_KNOWN_CHARS && this.#mentioned.size < MAX_KNOWN) this.#mentioned.set(uri, server)
  }

  /** A template that begins with a placeholder would match the resources of every server, so it is not used. */
  learnTemplate(server: string, uriTemplate: string): void {
    if (!BEGINS_WITH_SCHEME.test(uriTemplate)) return
    if (this.#only !== undefined || this.#templates.has(uriTemplate) || this.#templates.size >= MAX_TEMPLATES) return
    const ofOne = [...this.#templates.values()].filter((known) => known.server === server)
    if (ofOne.length >= MAX_TEMPLATES_OF_ONE) return
    const matches = templateMatcher(uriTemplate)
    // An invalid template matches nothing.
    if (matches) this.#templates.set(uriTemplate, { server, matches })
  }

  /** `name` is the server's own URI. undefined if nobody has listed it. */
  target(uri: string): Target | undefined {
    if (this.#only !== undefined) return { server: this.#only, name: uri }
    const owner = this.#owners.get(uri) ?? this.#templates.get(uri)?.server
    if (owner !== undefined) return { server: owner, name: uri }
    const alias = readAlias(uri)
    if (alias) return alias
    // The most specific template wins: servers must not be able to take over what others serve.
    const [best] = [...this.#templates]
      .filter(([, { matches }]) => matches(uri))
      .sort(([one], [other]) => literalStart(other) - literalStart(one))
    const server = best?.[1].server ?? this.#mentioned.get(uri)
    return server === undefined ? undefined : { server, name: uri }
  }
}

function literalStart(template: string): number {
  return template.indexOf('{') === -1 ? template.length : template.indexOf('{')
}

function readAlias(uri: string): Target | undefined {
  if (!uri.startsWith(ALIAS)) return undefined
  const [server = '', name = ''] = uri.slice(ALIAS.length).split('/')
  try {
    return { server: decodeURIComponent(server), name: decodeURIComponent(name) }
  } catch {
    return undefined
  }
}
