/** The four tools as a client sees them. The descriptions are written for the model that chooses among them. */

import type { GatewayTool } from '../gateway-services.ts'

export const GATEWAY_TOOLS: GatewayTool[] = [
  {
    name: 'find_tool',
    title: 'Find a tool',
    description: `Finds tools on all connected MCP servers for a request in plain words. Returns matches as {server, tool, confidence, description}, best first. A confidence of 0.8 means that about 8 of 10 such matches are right. Use it when you don't know which tool to use. Then run your choice with "execute"; call "explain_tool" first if you don't know its parameters. Ask with the user's own words: what you then run is remembered for the next time.`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        query: { type: 'string', description: 'What you want to do, in plain words, or the name of a tool.' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: 'Maximum number of matches (default 5).' },
        threshold: {
          type: 'number',
          minimum: 0,
          maximum: 1,
          description: 'Below this confidence of the best match, "abstained" is true.'
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
    description: `Runs a tool of a connected MCP server and returns the tool's own result. Preferred: give "server", "tool" and "params" that match its input schema, and the user's wish in a short sentence as "request", from which later requests are routed better. Or give "request", an English sentence that contains the values (and "params", if you have them). The best tool is then found, and it runs only if it is read-only, the sentence plainly asks for it, and all values are used. With a tool that you name, values are taken from "request" only if it is a plain order. If nothing was run, the result has a "status": {status:"needs_confirmation", server, tool, params, confidence, reason, candidates}: if this is the right call, repeat it with "server", "tool" and "params". {status:"needs_params", server, tool, inputSchema, candidates}: call again with "server", "tool" and "params". {status:"needs_choice", candidates}: call again with the "server" and "tool" that you mean. If "tool" is the wrong one, use one of "candidates".`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        request: {
          type: 'string',
          description:
            'What the user wants, in one plain sentence. Required if no tool is named; then only a read-only tool is run.'
        },
        server: { type: 'string', description: 'The server, as returned by find_tool or list_capabilities.' },
        tool: { type: 'string', description: 'The tool, as returned by find_tool or list_capabilities.' },
        params: { type: 'object', description: "The tool's parameters.", additionalProperties: true }
      },
      additionalProperties: false
    },
    annotations: { readOnlyHint: false, openWorldHint: true }
  },
  {
    name: 'list_capabilities',
    title: 'List servers and tools',
    description: `Lists the connected MCP servers with the names of their tools, and which servers have not been listed yet or are failing. With "category" (the name of a server, or a word such as "files" or "database"), lists only what matches, with one line of description per tool. Starts no server.`,
    inputSchema: {
      type: 'object' as const,
      properties: {
        category: { type: 'string', description: 'A server, or a word for what you are looking for.' }
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

const FORMAT = {
  type: 'string',
  enum: ['typescript'],
  description: 'Returns only a short TypeScript signature, for run_code.'
}

/** The four, if programs may be run too. */
export const CODE_TOOLS: GatewayTool[] = GATEWAY_TOOLS.map((tool) => {
  if (tool.name !== 'explain_tool') return tool
  const { inputSchema } = tool
  return { ...tool, inputSchema: { ...inputSchema, properties: { ...inputSchema.properties, format: FORMAT } } }
})

export const INSTRUCTIONS = `This server gives access to many MCP servers. Find a tool with "find_tool" (or "list_capabilities"), see its parameters with "explain_tool", and run it with "execute". If you know the server, tool and parameters, call "execute" directly.`
