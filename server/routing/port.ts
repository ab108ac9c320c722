/** From a sentence to a tool, with a confidence that means what it says. Embedded and offline; learns from what was chosen. */

export interface RoutableTool {
  server: string
  name: string
  description: string
  /** Names and descriptions of its parameters, as text. */
  params?: string | undefined
  /** Requests that it is meant for, as a person or a model wrote them. */
  examples?: readonly string[] | undefined
}

/** What the registry says about a server, beyond its tools. */
export interface ServerHints {
  description?: string | undefined
  keywords?: string[] | undefined
  /** Sentences that this server is meant for. */
  examples?: string[] | undefined
}

export interface RouteMatch {
  server: string
  tool: string
  /** Of the first answers given with 0.8, about 80 % are right. */
  confidence: number
  description: string
}

export interface RouteResult {
  matches: RouteMatch[]
  /** Nothing is sure enough: `matches` are candidates to choose from. */
  abstained: boolean
}

export interface UsageExample {
  request: string
  server: string
  tool: string
  at: number
}

/** How near the meaning of each tool is to that of a request: cosines of embeddings, by `toolKey`. */
export type Likeness = ReadonlyMap<string, number>

export interface FindOptions {
  limit?: number | undefined
  threshold?: number | undefined
  server?: string | undefined
  likeness?: Likeness | undefined
}

export interface Router {
  /** Replaces what is known of a server; cheap, because lists change while requests come. */
  setServer(server: string, tools: RoutableTool[], hints?: ServerHints): void
  removeServer(server: string): void
  find(request: string, options?: FindOptions): RouteResult
  /** A request that ended in a successful, explicitly chosen tool. Bounded; the oldest go first. */
  learn(example: UsageExample): void
  usage(): readonly UsageExample[]
  forgetUsage(): void
}
