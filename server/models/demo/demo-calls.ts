import { randomUUID } from 'node:crypto'
import type { AssistantPart, ModelTool } from '../port.ts'
import { readArguments } from '../step/read-arguments.ts'
import type { DemoRequest } from './demo-requests.ts'

type ToolCall = Extract<AssistantPart, { type: 'tool-call' }>

const TOOLS = { list: 'list_files', read: 'read_file', write: 'write_file', run: 'execute_command' } as const

export interface DemoCalls {
  calls: ToolCall[]
  /** Names of requested tools that are not available. */
  missing: string[]
}

export function toCalls(requests: DemoRequest[], tools: ModelTool[]): DemoCalls {
  const calls: ToolCall[] = []
  const missing: string[] = []
  for (const request of requests) {
    const wanted = request.kind === 'use' ? request.tool : TOOLS[request.kind]
    const tool = findTool(tools, wanted)
    if (tool === undefined) missing.push(wanted)
    else calls.push(call(tool.name, argumentsOf(request)))
  }
  return { calls, missing }
}

/** Whether a tool's name, with any prefix, means this plain name. */
export function isTool(name: string, plain: string): boolean {
  if (name === plain) return true
  const before = name.endsWith(plain) ? name.at(-plain.length - 1) : undefined
  return before !== undefined && !/[a-z0-9]/i.test(before)
}

function findTool(tools: ModelTool[], plain: string): ModelTool | undefined {
  const fitting = tools.filter(({ name }) => isTool(name, plain))
  return (
    fitting.find(({ name }) => name === plain) ?? fitting.find(({ name }) => name.startsWith('workspace')) ?? fitting[0]
  )
}

function call(name: string, args: string): ToolCall {
  const { invalid } = readArguments(args)
  return {
    type: 'tool-call',
    callId: `demo_${randomUUID()}`,
    name,
    args,
    ...(invalid !== undefined && { invalid })
  }
}

function argumentsOf(request: DemoRequest): string {
  switch (request.kind) {
    case 'use':
      return request.args
    case 'list':
      return JSON.stringify(request.path === undefined ? {} : { path: request.path })
    case 'read':
      return JSON.stringify({ path: request.path })
    case 'write':
      return JSON.stringify({ path: request.path, content: request.content })
    case 'run':
      return JSON.stringify({ command: request.command })
  }
}
