/** The four tools as a client sees them: the descriptions are written for the model that has to choose among them. */

const OUTPUT_NOTE = 'Nothing is started by asking.'

export const GATEWAY_TOOLS = [
  {
    name: 'find_tool',
    title: 'Find a tool',
    description: `Finds the tools of all connected MCP servers that fit a request in plain words. Returns matches as {server, tool, confidence, description}, best first; a confidence of 0.8 means that about 8 in 10 such answers are right. Use it when you don't know which tool to use; then run the one you choose with "execute", after "explain_tool" if you don't know its parameters.`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        query: { type: 'string', description: 'What you want to do, in plain words, or the name of a tool.' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: 'At most so many matches (5).' },
        threshold: {
          type: 'number',
          minimum: 0,
          maximum: 1,
          description: 'Confidence below which the answer counts as unsure.'
        }
      },
      required: ['query'],
      additionalProperties: false
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  },
  {
    name: 'execute',
    title: 'Run a tool',
    description: `Runs a tool of a connected MCP server and returns that tool's own result. Best: name "server" and "tool" and give "params" as its input schema asks. Or give only "request", a sentence in plain words with the values in it (and "params", if you have them): the best tool is found, and is run if it only reads, the sentence plainly asks for it in English, and all its values are used. Instead of a result you may get {status:"needs_confirmation", server, tool, params, confidence, reason, candidates} (nothing was run, and "reason" says why: if it is the right tool, call again with "server", "tool" and "params"), {status:"needs_params", server, tool, inputSchema, candidates} (call again with "server", "tool" and "params") or {status:"needs_choice", candidates} (call again with "server" and "tool" of the one you mean). If "tool" is not what you mean, take one of "candidates".`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        request: {
          type: 'string',
          description: 'What to do, in plain words. Needed when no tool is named; a tool is then run only if it reads.'
        },
        server: { type: 'string', description: 'The server, as find_tool or list_capabilities name it.' },
        tool: { type: 'string', description: 'The tool, as find_tool or list_capabilities name it.' },
        params: { type: 'object', description: "The tool's parameters.", additionalProperties: true }
      },
      additionalProperties: false
    },
    annotations: { readOnlyHint: false, openWorldHint: true }
  },
  {
    name: 'list_capabilities',
    title: 'List servers and tools',
    description: `Lists the connected MCP servers with the names of their tools, and which servers are not known yet or failing. With "category" (the name of a server, or a word such as "files" or "database") only those that fit, each tool with a line of description. ${OUTPUT_NOTE}`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        category: { type: 'string', description: 'A server, or a word that describes what you look for.' }
      },
      additionalProperties: false
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  },
  {
    name: 'explain_tool',
    title: 'Explain a tool',
    description: `Returns the full description, input schema, output schema and annotations of one tool. Use it before "execute" when you don't know the tool's parameters.`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        server: { type: 'string', description: 'The server that has the tool.' },
        tool: { type: 'string', description: 'The name of the tool.' }
      },
      required: ['server', 'tool'],
      additionalProperties: false
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }
]

export const INSTRUCTIONS = `This server stands for many MCP servers. Find what you need with "find_tool" (or "list_capabilities"), look at it with "explain_tool", run it with "execute". If you know server, tool and parameters, call "execute" at once.`
