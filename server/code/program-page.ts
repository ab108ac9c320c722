/** The short page that teaches a model to write programs. Both faces show it; `program-page.test.ts` keeps it true. */

export const MIN_TIMEOUT_MS = 100
export const MAX_TIMEOUT_MS = 1_800_000
export const DEFAULT_TIMEOUT_MS = 300_000

export const PROGRAM_PARAMETERS = {
  code: { type: 'string', description: 'The program, in TypeScript.' },
  timeoutMs: {
    type: 'number',
    minimum: MIN_TIMEOUT_MS,
    maximum: MAX_TIMEOUT_MS,
    description: `Default: ${DEFAULT_TIMEOUT_MS}.`
  }
}

/** They read what an answer has only a part of. */
export const READ_ON_PARAMETERS = {
  from: { type: 'integer', minimum: 0, description: 'Without "code": reads on from this character.' },
  of: { enum: ['value', 'logs'], description: 'With "from". Default: value, as JSON.' }
}

export const PROGRAM_API = `API: await tools.SERVER.TOOL(args) returns the structured result or the text, and throws a ToolError with code and message; write tools["my-server"]["my-tool"] for other names. await search("words") finds tools as [{server, tool, confidence, description}]; await describe(server, tool) returns its TypeScript signature with the type of the result. progress(text), console.log(…), setTimeout. Top-level await works; the last expression or "return" is the value. Use Promise.all for independent calls. There is no import, fetch, process, file access, URL, Buffer or crypto; time and Math.random are replayed.`

export const PROGRAM_PURPOSE =
  'Runs a small TypeScript program that calls tools of the connected servers: use it in place of many single calls, for loops, joins and filters. Only what you return or print comes back to you.'
