import { afterEach, expect, it, vi } from 'vitest'
import type { Command } from './command.ts'
import { say } from './command.ts'
import { doctorCommand } from './doctor/doctor.ts'
import { gatewayCommand } from './gateway.ts'
import { migrateCommand } from './migrate.ts'
import { runCli } from './run-cli.ts'
import { serversCommand } from './servers/servers.ts'

const command: Command = {
  name: 'anywhere',
  summary: 'runs anywhere',
  defaults: () => ({ MCP_CONFIG: '/home/me/mcp.json' }),
  ignoresDotenv: true,
  run: async () => 0
}

afterEach(() => vi.restoreAllMocks())

it('points to the help that lists the flags after a wrong flag', async () => {
  let err = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text
    return true
  })
  expect(await runCli(['anywhere', '--colour'], [command])).toBe(2)
  expect(err).toBe("mcp-orchestrator: Unknown option '--colour'. See mcp-orchestrator anywhere --help.\n")
})

it('says in one line that a file of settings is missing', async () => {
  let err = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text
    return true
  })
  const code = await runCli(['migrate', '--from', '/nowhere/from.env', '--to', '/nowhere/to.env'], [migrateCommand])
  expect([code, err]).toEqual([
    2,
    "mcp-orchestrator: --from: /nowhere/from.env can't be used: there is no such file.\n"
  ])
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

it('shows the help of one action only, and where all settings are listed', async () => {
  let out = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text
    return true
  })
  expect(await runCli(['servers', 'disable', '--help'], [serversCommand])).toBe(0)
  expect(out).toMatch(/^ {2}servers remove \| enable \| disable NAME\n\n {2}--json/m)
  expect(out).toMatch(/--config .*\n/)
  expect(out).toMatch(/\n\nAll settings: mcp-orchestrator serve --help, or the table in README\.md\.\n$/)
  expect(out.split('\n').length).toBeLessThan(15)
  expect(out).not.toMatch(/--yes|--url|servers import/)
  out = ''
  expect(await runCli(['servers', '--help', 'import'], [serversCommand])).toBe(0)
  expect(out).toMatch(/servers import \[FILE\][\s\S]*--yes +don't ask/)
  out = ''
  expect(await runCli(['servers', '--help'], [serversCommand])).toBe(0)
  expect(out).toMatch(/servers list [\s\S]*servers usage [\s\S]*--yes +import, accept: don't ask/)
  out = ''
  expect(await runCli(['gateway', '--help'], [gatewayCommand])).toBe(0)
  expect(out).toMatch(/--config [\s\S]*--expose [\s\S]*All settings: mcp-orchestrator serve --help/)
  expect(out.split('\n').length).toBeLessThan(20)
  out = ''
  expect(await runCli(['doctor', '--help'], [doctorCommand])).toBe(0)
  expect(out.split('\n').length).toBeLessThan(25)
})

it('tells what a command does in words that control no terminal', () => {
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  say('Copied a\u001b[2J\u202eb')
  expect(written).toHaveBeenCalledWith('Copied a⟨U+202E⟩b\n')
  written.mockRestore()
})
