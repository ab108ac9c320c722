/** The command line: finds the command, reads its settings, and turns what goes wrong into one sentence and an exit code. */
import { parseArgs } from 'node:util'
import { loadSettings, readDotenv } from '../config/load-settings.ts'
import { flagOf, SETTINGS, type SettingName } from '../config/settings.ts'
import { AppError, isAppError, messageOf } from '../lib/errors.ts'
import { packageVersion } from '../lib/package-version.ts'
import type { Command } from './command.ts'
import { doctorCommand } from './doctor.ts'
import { serveCommand } from './serve.ts'

const COMMANDS: Command[] = [serveCommand, doctorCommand]
const EXIT = { failed: 1, usage: 2 }

export async function runCli(args: string[]): Promise<number> {
  try {
    const [name, ...rest] = args
    if (name === '--version' || name === '-v') return say(packageVersion())
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') return say(overview())
    const command = COMMANDS.find((candidate) => candidate.name === name)
    if (!command) throw usage(`There is no command "${name}".`)
    const { help, flags } = readFlags(rest)
    if (help) return say(commandHelp(command))
    return await command.run(loadSettings({ flags, env: process.env, dotenv: readDotenv() }))
  } catch (error) {
    process.stderr.write(`mcp-orchestrator: ${isAppError(error) ? error.message : explainBug(error)}\n`)
    return isAppError(error) && error.kind === 'invalid' ? EXIT.usage : EXIT.failed
  }
}

function readFlags(args: string[]): { help: boolean; flags: Record<string, string | undefined> } {
  const names = (Object.keys(SETTINGS) as SettingName[]).map(flagOf).filter((flag) => flag !== undefined)
  const options = Object.fromEntries(names.map((flag) => [flag, { type: 'string' as const }]))
  try {
    const { values } = parseArgs({ args, options: { ...options, help: { type: 'boolean', short: 'h' } }, strict: true })
    const { help, ...flags } = values
    return { help: help === true, flags: flags as Record<string, string | undefined> }
  } catch (error) {
    throw usage(messageOf(error).split('. ')[0] ?? '')
  }
}

function usage(problem: string): AppError {
  return new AppError('invalid', 'usage', `${problem.replace(/\.$/, '')}. See mcp-orchestrator --help.`)
}

function overview(): string {
  const rows = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(10)}${summary}`)
  return [
    'Usage: mcp-orchestrator COMMAND [--flag value …]',
    '',
    ...rows,
    '',
    'COMMAND --help lists its flags; --version.'
  ].join('\n')
}

function commandHelp(command: Command): string {
  const rows = (Object.keys(SETTINGS) as SettingName[]).flatMap((name) => {
    const flag = flagOf(name)
    const setting: { help: string; fallback?: unknown } = SETTINGS[name]
    const fallback = setting.fallback === undefined ? '' : ` (${setting.fallback})`
    const how = flag ? `--${flag}` : '(no flag)'
    return `  ${how.padEnd(30)}${name.padEnd(28)}${setting.help}${fallback}`
  })
  return [
    `mcp-orchestrator ${command.name}: ${command.summary}`,
    '',
    'Flag, or variable in the environment or .env:',
    ...rows
  ].join('\n')
}

function explainBug(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function say(text: string): number {
  process.stdout.write(`${text}\n`)
  return 0
}
