/**
 * Twenty tasks over eight real MCP servers: joins of two servers, loops over fifty items, filters of a 5 MB result, retries, writes. Each
 * is a program. Code mode runs it as it is. The other ways make the same calls, as a model does that has no programs: calls that a
 * program makes together are one step of that model. `FOLDER` and `SITE` are replaced.
 */

export interface Task {
  name: string
  code: string
}

/** Results of the filesystem server have their text in `content`. */
const TEXT = `const text = (result) => (typeof result === 'string' ? result : result.content)
const read = async (path) => text(await tools.filesystem.read_text_file({ path: 'FOLDER/' + path }))
const notes = Array.from({ length: 50 }, (_, at) => 'notes/n' + at + '.txt')
`
const LOG = `${TEXT}const rows = (await read('log.csv')).split('\\n').map((line) => line.split(','))\n`
const ALL_NOTES = `${TEXT}const all = await Promise.all(notes.map(read))\n`
const LINT = `const scripts = Array.from({ length: 50 }, (_, at) => 'FOLDER/scripts/s' + at + '.js')
const lint = async (paths) => (await tools.eslint['lint-files']({ filePaths: paths })).split('\\n').filter((line) => line[0] === '{').map((line) => JSON.parse(line))
`

const FILTERS: Task[] = [
  {
    name: 'filter 5 MB: errors by code',
    code: `${LOG}const count = {}; for (const row of rows) if (row[2] === 'ERROR') count[row[3]] = (count[row[3]] ?? 0) + 1\ncount`
  },
  { name: 'filter 5 MB: sum of a column', code: `${LOG}rows.reduce((sum, row) => sum + (Number(row[4]) || 0), 0)` },
  {
    name: 'filter 5 MB: the five slowest',
    code: `${LOG}rows.toSorted((a, b) => (Number(b[4]) || 0) - (Number(a[4]) || 0)).slice(0, 5)`
  },
  {
    name: 'filter 5 MB: users in a web page',
    code: `await tools.playwright.browser_navigate({ url: 'SITE/log' })
const page = await tools.playwright.browser_evaluate({ function: '() => document.body.textContent' })
new Set(page.match(/user\\d+/g)).size`
  }
]

const LOOPS: Task[] = [
  { name: 'loop of 50: words in all notes', code: `${ALL_NOTES}all.join(' ').split(/\\s+/).length` },
  { name: 'loop of 50: notes with a word', code: `${ALL_NOTES}notes.filter((_, at) => all[at].includes('urgent'))` },
  {
    name: 'loop of 50: the largest file',
    code: `${TEXT}const infos = await Promise.all(notes.map(async (path) => ({ path, size: Number(/size: (\\d+)/.exec(text(await tools.filesystem.get_file_info({ path: 'FOLDER/' + path })))?.[1]) })))\ninfos.toSorted((a, b) => b.size - a.size)[0]`
  },
  {
    name: 'loop of 50: sums',
    code: `let sum = 0\nfor (let n = 1; n <= 50; n++) sum = Number(/is (\\d+)/.exec(await tools.everything['get-sum']({ a: sum, b: n }))?.[1])\nsum`
  },
  {
    name: 'loop of 50: observations of people',
    code: `const { entities } = await tools.memory.read_graph()
const open = await Promise.all(entities.map(({ name }) => tools.memory.open_nodes({ names: [name] })))
open.reduce((count, { entities: [person] }) => count + person.observations.length, 0)`
  },
  {
    name: 'loop of 50: rules that scripts break',
    code: `${LINT}const rules = {}
for (const [{ messages }] of await Promise.all(scripts.map((path) => lint([path]))))
  for (const { ruleId } of messages) rules[ruleId] = (rules[ruleId] ?? 0) + 1
rules`
  },
  {
    name: 'loop of 50: titles of pages',
    code: `const titles = []
for (let n = 0; n < 50; n++) titles.push(/Page Title: (.*)/.exec(await tools.playwright.browser_navigate({ url: 'SITE/p' + n }))?.[1])
titles.filter((title) => title.includes('budget')).length`
  },
  {
    name: 'loop of 50: thoughts',
    code: `let history = 0
for (let n = 1; n <= 50; n++) history = (await tools['sequential-thinking'].sequentialthinking({ thought: 'step ' + n, thoughtNumber: n, totalThoughts: 50, nextThoughtNeeded: n < 50 })).thoughtNumber
history`
  }
]

const JOINS: Task[] = [
  {
    name: 'join: people without notes',
    code: `${TEXT}const { entities } = await tools.memory.read_graph()\nconst files = text(await tools.filesystem.list_directory({ path: 'FOLDER/notes' }))\nentities.filter((_, at) => !files.includes('n' + at + '.txt ')).length`
  },
  {
    name: 'join: people and their notes',
    code: `${ALL_NOTES}const { entities } = await tools.memory.read_graph()\nentities.map(({ name }, at) => ({ name, words: all[at].split(/\\s+/).length })).filter(({ words }) => words > 140)`
  },
  {
    name: 'join: the largest script with errors',
    code: `${TEXT}${LINT}const wrong = (await lint(scripts)).filter(({ messages }) => messages.some(({ severity }) => severity === 2))
const sizes = await Promise.all(wrong.map(async ({ filePath }) => Number(/size: (\\d+)/.exec(text(await tools.filesystem.get_file_info({ path: filePath })))?.[1])))
Math.max(...sizes)`
  },
  {
    name: 'join: a page in two browsers',
    code: `const [one, other] = await Promise.all([tools.playwright.browser_navigate({ url: 'SITE/p7' }), tools.chrome.new_page({ url: 'SITE/p7' })])
const title = /Page Title: (.*)/.exec(one)?.[1]
other.includes(title) ? title : 'they differ'`
  },
  {
    name: 'join: three short calls',
    code: `const cities = ['New York', 'Chicago', 'Los Angeles']\nconst weather = await Promise.all(cities.map((location) => tools.everything['get-structured-content']({ location })))\nweather.map(({ temperature }, at) => cities[at] + ' ' + temperature)`
  }
]

const RETRIES: Task[] = [
  {
    name: 'retry: each note or its successor',
    code: `${TEXT}const found = await Promise.all(notes.slice(0, 20).map((path) => read('gone/' + path).catch(() => read(path))))\nfound.join('').length`
  },
  {
    name: 'retry: a database that does not answer, then its export',
    code: `${TEXT}const rows = await tools.mongodb.find({ connectionId: 'crm', database: 'crm', collection: 'people' }).catch(() => read('export.json').then(JSON.parse))
rows.filter(({ city }) => city === 'Chicago').length`
  }
]

const WRITES: Task[] = [
  {
    name: 'write: one entity for every fifth note',
    code: `${ALL_NOTES}const entities = all.filter((_, at) => at % 5 === 0).map((note, at) => ({ name: 'note ' + at, entityType: 'note', observations: [note.slice(0, 40)] }))\nawait tools.memory.create_entities({ entities })\nentities.length`
  }
]

export const TASKS: readonly Task[] = [...FILTERS, ...LOOPS, ...JOINS, ...RETRIES, ...WRITES]
