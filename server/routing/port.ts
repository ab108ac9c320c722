/** Finds the tool for a sentence, with a calibrated confidence. Runs in process and offline; learns from earlier choices. */

export interface RoutableTool {
  server: string
  name: string
  description: string
  /** Names and descriptions of the parameters, as text. */
  params?: string | undefined
  /** Example requests, written by a person or a model. */
  examples?: readonly string[] | undefined
}

/** The registry's description of a server, in addition to its tools. */
export interface ServerHints {
  description?: string | undefined
  keywords?: string[] | undefined
  /** Example requests for this server. */
  examples?: string[] | undefined
}

export interface RouteMatch {
  server: string
  tool: string
  /** Calibrated: of the first answers with 0.8, about 80 % are right. */
  confidence: number
  description: string
}

export interface RouteResult {
  matches: RouteMatch[]
  /** No match is certain enough: `matches` are candidates to choose from. */
  abstained: boolean
  /** Similarity of the nearest past request, 0 to 1; less if its tool was chosen only once. */
  recalled?: number
}

export interface UsageExample {
  request: string
  server: string
  tool: string
  at: number
  /** The owner of the request; the local user if not set. */
  owner?: string | undefined
  /** The chat session in which it was made, if any: it is forgotten with the session. */
  session?: string | undefined
}

/**
 * How similar each tool is in meaning to a request, by `toolKey`: cosines on the scale of all-MiniLM-L6-v2, in which unrelated texts are
 * near 0.1.
 */
export type Similarities = ReadonlyMap<string, number>

export interface FindOptions {
  limit?: number | undefined
  threshold?: number | undefined
  server?: string | undefined
  similarities?: Similarities | undefined
  /** The owner whose past requests count; the local user if not set. */
  owner?: string | undefined
  /** Past requests don't count. */
  ignoresUsage?: boolean | undefined
}

export interface Router {
  /** Replaces what is known about a server. Cheap, because tool lists change while requests come in. */
  setServer(server: string, tools: RoutableTool[], hints?: ServerHints): void
  removeServer(server: string): void
  find(request: string, options?: FindOptions): RouteResult
  /** Learns a request that ended in a successful, explicitly chosen tool. Keeps a limited number; the oldest are dropped first. */
  learn(example: UsageExample): void
  usage(): readonly UsageExample[]
  forgetUsage(): void
}
