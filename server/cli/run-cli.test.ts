import { afterEach, expect, it, vi } from 'vitest'
import type { Command } from './command.ts'
import { runCli } from './run-cli.ts'

const command: Command = {
  name: 'anywhere',
  summary: 'runs anywhere',
  defaults: () => ({ MCP_CONFIG: '/home/me/mcp.json' }),
  ignoresDotenv: true,
  run: async () => 0
}

afterEach(() => vi.restoreAllMocks())

it('shows the defaults that the command really has', async () => {
  let out = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text
    return true
  })
  expect(await runCli(['anywhere', '--help'], [command])).toBe(0)
  expect(out).toMatch(/MCP_CONFIG +file with the MCP servers \(\/home\/me\/mcp\.json\)\n/)
  expect(out).toMatch(/DATA_DIR .*\(\.\/data\)\n/)
  expect(out).not.toContain('.env')
})
