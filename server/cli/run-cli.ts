/** The command line: finds the command, reads its settings, runs it, and turns errors into a message and an exit code. */
import { parseArgs } from 'node:util'
import { terminalLine, terminalText } from '../../contract/hidden-characters.ts'
import { isNamed, loadSettings, readDotenv } from '../config/load-settings.ts'
import { flagOf, SETTINGS, type SettingName } from '../config/settings.ts'
import { credentialsDefault } from '../config/user-folders.ts'
import { type AppError, isAppError, messageOf, operatorMessageOf } from '../lib/errors.ts'
import { packageVersion } from '../lib/files/package-version.ts'
import { createLogger } from '../lib/logger.ts'
import type { Command, CommandInput } from './command.ts'
import { usageError } from './usage-error.ts'

const EXIT = { failed: 1, usage: 2 }

export async function runCli(args: string[], commands: Command[]): Promise<number> {
  // Keep working when the reader of stderr is gone: with `serve 2>&1 | tee log`, Ctrl-C also ends `tee`.
  process.stderr.on('error', () => {})
  try {
    const [name, ...rest] = args
    if (name === '--version' || name === '-v') return say(packageVersion())
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') return say(overview(commands))
    const command = commands.find((candidate) => candidate.name === name)
    if (!command) throw usage(`There is no command "${name}".`)
    if (command.name !== 'gateway') leaveWithReader()
    const { help, settings: flags, input } = parseArguments(command, rest)
    if (help) return say(commandHelp(command, input.words[0]))
    const defaults = { ...credentialsDefault(process.env), ...command.defaults?.(process.env) }
    const dotenv = command.ignoresDotenv ? '' : readDotenv()
    const sources = { flags, env: process.env, dotenv, defaults }
    const named = (setting: SettingName) => isNamed(setting, sources)
    return await command.run(loadSettings(sources), { ...input, isNamed: named })
  } catch (error) {
    report(error, commands.find(({ name }) => name === args[0])?.logsJson === true && !process.stderr.isTTY)
    return isAppError(error) && error.kind === 'invalid' ? EXIT.usage : EXIT.failed
  }
}

function report(error: unknown, asJson: boolean): void {
  if (asJson) createLogger('info').fatal({ err: error }, messageOf(error))
  else
    process.stderr.write(
      `mcp-orchestrator: ${isAppError(error) ? terminalLine(operatorMessageOf(error)) : terminalText(explainBug(error))}\n`
    )
}

interface Arguments {
  help: boolean
  settings: Record<string, string | undefined>
  input: Omit<CommandInput, 'isNamed'>
}

function parseArguments(command: Command, args: string[]): Arguments {
  const names = (Object.keys(SETTINGS) as SettingName[]).map(flagOf).filter((flag) => flag !== undefined)
  const own = Object.entries(command.flags ?? {}).map(([name, { type, multiple }]) => [
    name,
    { type, multiple: multiple ?? false }
  ])
  const options = {
    ...Object.fromEntries(names.map((flag) => [flag, { type: 'string' as const }])),
    ...Object.fromEntries(own),
    help: { type: 'boolean' as const, short: 'h' }
  }
  const end = args.includes('--') ? args.indexOf('--') : args.length
  try {
    const allowPositionals = command.usage !== undefined
    const { values, positionals } = parseArgs({ args: args.slice(0, end), options, strict: true, allowPositionals })
    const given = Object.entries(values)
    const isOwn = (name: string) => command.flags?.[name] !== undefined
    return {
      help: given.some(([name]) => name === 'help'),
      settings: Object.fromEntries(
        given.flatMap(([name, value]) => (isOwn(name) || typeof value !== 'string' ? [] : [[name, value]]))
      ),
      input: {
        words: positionals,
        flags: Object.fromEntries(given.filter(([name]) => isOwn(name))) as CommandInput['flags'],
        rest: args.slice(end + 1)
      }
    }
  } catch (error) {
    throw usage(command.advice?.(args) ?? messageOf(error).split('. ')[0] ?? '', command)
  }
}

function usage(problem: string, command?: Command): AppError {
  const help = ['mcp-orchestrator', ...(command ? [command.name] : []), '--help'].join(' ')
  return usageError(`${problem.replace(/\.$/, '')}. See ${help}.`)
}

function overview(commands: Command[]): string {
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`)
  return [
    'Usage: mcp-orchestrator COMMAND [--flag value …]',
    '',
    ...rows,
    '',
    'Run mcp-orchestrator COMMAND --help for the flags of a command, or --version.'
  ].join('\n')
}

function commandHelp(command: Command, word: string | undefined): string {
  const linesOf = (action: string) =>
    (command.usage ?? []).filter((line) => line.split(/[ |]+/).slice(0, actionCount(line)).includes(action))
  const action = word !== undefined && linesOf(word).length > 0 ? word : undefined
  const usage = action === undefined ? (command.usage ?? []) : linesOf(action)
  const own = Object.entries(command.flags ?? {})
    .filter(([, flag]) => action === undefined || (flag.for?.includes(action) ?? true))
    .map(([name, flag]) => {
      const whose = action === undefined && flag.for ? `${flag.for.join(', ')}: ` : ''
      return `  ${`--${name}`.padEnd(30)}${whose}${flag.help}`
    })
  return [
    `mcp-orchestrator ${command.name}: ${command.summary}`,
    '',
    ...usage.map((line) => `  ${command.name} ${line}`),
    ...(usage.length > 0 ? [''] : []),
    ...own,
    ...(own.length > 0 ? [''] : []),
    `Flag, or variable in the environment${command.ignoresDotenv ? '' : ' or .env'}:`,
    ...settingRows(command),
    ...(command.mainSettings ? ['', 'All settings: mcp-orchestrator serve --help, or the table in README.md.'] : [])
  ].join('\n')
}

/** The line `remove | enable NAME` describes two actions. */
function actionCount(usage: string): number {
  return (/^[a-z]+( \| [a-z]+)*/.exec(usage)?.[0].split(' | ') ?? []).length
}

function settingRows(command: Command): string[] {
  const defaults = command.defaults?.(process.env) ?? {}
  return (command.mainSettings ?? (Object.keys(SETTINGS) as SettingName[])).map((name) => {
    const flag = flagOf(name)
    const setting: { help: string; fallback?: unknown; shown?: string } = SETTINGS[name]
    const usual = defaults[name] ?? setting.shown ?? setting.fallback
    const fallback = usual === undefined || String(usual) === '' ? '' : ` (${usual})`
    const how = flag ? `--${flag}` : '(no flag)'
    return `  ${how.padEnd(30)}${name.padEnd(28)}${setting.help}${fallback}`
  })
}

/** In `doctor | head`, a reader that stops early is not an error. The gateway handles the end of its client itself. */
function leaveWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}

function explainBug(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function say(text: string): number {
  process.stdout.write(`${text}\n`)
  return 0
}
