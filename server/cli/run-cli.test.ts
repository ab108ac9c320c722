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

it('leads who gives a wrong flag to the help that lists them', async () => {
  let err = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text
    return true
  })
  expect(await runCli(['anywhere', '--colour'], [command])).toBe(2)
  expect(err).toBe("mcp-orchestrator: Unknown option '--colour'. See mcp-orchestrator anywhere --help.\n")
})

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
