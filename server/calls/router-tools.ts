/** The chat's own tools for finding and running tools that the model is not offered because there are too many. */
import type { ToolDefinitionInput } from './offered-tool.ts'

export const FIND_TOOL = 'find_tool'
export const EXECUTE = 'execute'

export const ROUTER_TOOLS: ToolDefinitionInput[] = [
  {
    name: FIND_TOOL,
    description:
      'Finds tools of the connected MCP servers that are not in your list. Say in plain words what you want to do, or give the name of a tool. Returns {server, tool, confidence, description, inputSchema} for each match, best first. Run your choice with "execute".',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What you want to do, in plain words, or the name of a tool.' },
        limit: { type: 'integer', minimum: 1, maximum: 20, description: 'Maximum number of matches (default 5).' }
      },
      required: ['query'],
      additionalProperties: false
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  },
  {
    name: EXECUTE,
    description:
      'Calls a tool of an MCP server that is not in your list, exactly as if it were: the person decides about the tool that you name. It does not run shell commands. Use "find_tool" first to learn the server, the tool and its parameters.',
    inputSchema: {
      type: 'object',
      properties: {
        server: { type: 'string', description: 'The server, as returned by find_tool.' },
        tool: { type: 'string', description: 'The tool, as returned by find_tool.' },
        params: { type: 'object', description: "The tool's parameters ({} if none).", additionalProperties: true }
      },
      required: ['server', 'tool', 'params'],
      additionalProperties: false
    }
  }
]
