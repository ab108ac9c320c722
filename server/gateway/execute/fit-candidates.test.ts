import { expect, it } from 'vitest'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { fitCandidates } from './fit-candidates.ts'

const tool = (name: string, description: string): StoredTool => ({
  ...{ name, description, hash: name, annotations: { readOnlyHint: true } },
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
})

function best(tools: StoredTool[], server = (_: string) => 'files') {
  const index = { tool: (_: string, name: string) => tools.find((each) => each.name === name) }
  const matches = tools.map(({ name, description }, at) => ({
    ...{ server: server(name), tool: name, description },
    confidence: at === 0 ? 0.8 : 0.1
  }))
  return fitCandidates({ index } as unknown as GatewayServices, 'read /etc/hosts', {}, matches)[0]?.tool
}

const read = tool('read_file', 'Reads a file as text. DEPRECATED: Use read_text_file instead.')
const readText = tool('read_text_file', 'Reads a file as text.')

// Checked: without the rule, the deprecated tool is first.
it('prefers the tool that a deprecated one names in its place, on the same server only', () => {
  expect(best([read, readText])).toBe('read_text_file')
  expect(best([read, readText], (name) => name)).toBe('read_file')
  expect(best([read, tool('read_texts', 'Reads a file as text.')])).toBe('read_file')
  const other = tool('read_file', 'Reads a file as text. Its sibling is read_text_file.')
  expect(best([other, readText])).toBe('read_file')
})

it('deprecated tools that name each other keep what they have together', () => {
  const one = tool('read_one', 'Reads. Deprecated, use read_two.')
  const two = tool('read_two', 'Reads. Deprecated, use read_one.')
  expect(best([one, two, tool('stat', 'Reads the size.')])).toMatch(/^read_/)
})
