/** Builds what the tasks are about: files, a graph of people, web pages, and eight servers that reach them. It is the same for each way. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { chromiumPath } from '../../tests/support/browser.ts'
import { eightServers } from '../gateway/tools-list.ts'

const WORDS = 'alpha beta gamma delta report urgent meeting budget review plan'.split(' ')
const CITIES = ['Chicago', 'Oslo', 'Lima']
const word = (seed: number) => WORDS[(seed * 7919) % WORDS.length] ?? ''

function logRows(): string {
  const rows = Array.from({ length: 110_000 }, (_, n) => {
    const level = n % 97 === 0 ? 'ERROR' : 'INFO'
    return `2026-01-01T00:00:${String(n % 60).padStart(2, '0')}Z,user${n % 500},${level},E${n % 7},${(n * 37) % 9973},ok`
  })
  return rows.join('\n')
}

export function prepareFiles(folder: string): void {
  for (const name of ['notes', 'scripts']) mkdirSync(join(folder, name), { recursive: true })
  for (let at = 0; at < 50; at++) {
    const words = Array.from({ length: 100 + at }, (_, n) => word(at * 31 + n) + (n % 12 === 11 ? '\n' : ''))
    writeFileSync(join(folder, `notes/n${at}.txt`), words.join(' '))
    const test = at % 3 === 0 ? `if (${word(at)} == 1) done()\n` : ''
    writeFileSync(join(folder, `scripts/s${at}.js`), `var ${word(at)} = ${at}\n${test.repeat(1 + (at % 4))}`)
  }
  const rules = '{ eqeqeq: "error", "no-var": "warn" }'
  writeFileSync(join(folder, 'scripts/eslint.config.mjs'), `export default [{ rules: ${rules} }]\n`)
  writeFileSync(join(folder, 'log.csv'), logRows())
  const people = Array.from({ length: 50 }, (_, n) => ({ name: `person ${n} x`, city: CITIES[n % CITIES.length] }))
  writeFileSync(join(folder, 'export.json'), JSON.stringify(people))
  const entities = people.map(({ name }, n) =>
    JSON.stringify({
      ...{ type: 'entity', name, entityType: 'person' },
      observations: [`likes ${word(n)}`, `knows ${word(n + 3)}`]
    })
  )
  writeFileSync(join(folder, 'memory.jsonl'), entities.join('\n'))
}

export interface Site {
  url: string
  close(): void
}

/** `/log` has 5 MB; every other page a title. */
export async function openSite(): Promise<Site> {
  const log = logRows()
  const server = createServer(({ url = '' }, response) => {
    const title = `<!doctype html><title>About ${word(Number(/\d+/.exec(url)?.[0] ?? 0))}</title>`
    response.setHeader('content-type', 'text/html').end(url === '/log' ? `${title}<pre>${log}</pre>` : title)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

const NAMES: Record<string, string> = {
  '@modelcontextprotocol/server-everything': 'everything',
  '@modelcontextprotocol/server-filesystem': 'filesystem',
  '@modelcontextprotocol/server-memory': 'memory',
  '@modelcontextprotocol/server-sequential-thinking': 'sequential-thinking',
  '@eslint/mcp': 'eslint',
  'mongodb-mcp-server': 'mongodb',
  '@playwright/mcp': 'playwright',
  'chrome-devtools-mcp': 'chrome'
}
/** Their user lets these do what they want: a browser in a profile of its own, and thoughts. Calls that write files or people have no rule. */
const ALLOWED = new Set(['playwright', 'chrome', 'sequential-thinking', 'eslint', 'everything'])

export interface ServerEntry {
  command: string
  args: string[]
  env: Record<string, string>
  cwd: string
  approval?: Record<string, string>
}

/** Throws if one of them can't be installed. They work beside `folder`, because browsers leave files where they work. */
export async function taskServers(folder: string): Promise<Record<string, ServerEntry>> {
  const cwd = `${folder}-scratch`
  mkdirSync(cwd)
  const { servers, problem } = await eightServers()
  if (problem) throw new Error(problem)
  const browser = ['--headless', '--isolated']
  const more: Record<string, Partial<Pick<ServerEntry, 'args' | 'env'>>> = {
    filesystem: { args: [folder] },
    memory: { env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    playwright: { args: [...browser, '--no-sandbox', '--executable-path', chromiumPath()] },
    chrome: { args: [...browser, '--executablePath', chromiumPath(), '--chromeArg=--no-sandbox'] }
  }
  const entries = [...servers].map(([pkg, { command, args, env }]): [string, ServerEntry] => {
    const name = NAMES[pkg] ?? pkg
    const own = more[name] ?? {}
    // The filesystem server of the list has another folder.
    const all = name === 'filesystem' ? args.slice(0, 1) : args
    const approval = ALLOWED.has(name) ? { approval: { '*': 'allow' } } : {}
    return [name, { command, args: [...all, ...(own.args ?? [])], env: { ...env, ...own.env }, cwd, ...approval }]
  })
  return Object.fromEntries(entries)
}
