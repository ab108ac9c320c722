/**
 * Twenty tasks over real MCP servers: joins of two servers, loops over fifty items, filters of a 5 MB result, retries. Each is a program.
 * Code mode runs it as it is. The other ways make the same calls one by one, as a model does that has no programs. `FOLDER` is replaced.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

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
const ALL_NOTES = `${TEXT}const all = []\nfor (const path of notes) all.push(await read(path))\n`

export const TASKS: Task[] = [
  {
    name: 'filter 5 MB: errors by code',
    code: `${LOG}const count = {}; for (const row of rows) if (row[2] === 'ERROR') count[row[3]] = (count[row[3]] ?? 0) + 1\ncount`
  },
  { name: 'filter 5 MB: sum of a column', code: `${LOG}rows.reduce((sum, row) => sum + (Number(row[4]) || 0), 0)` },
  { name: 'filter 5 MB: distinct users', code: `${LOG}new Set(rows.map((row) => row[1])).size` },
  {
    name: 'filter 5 MB: the five slowest',
    code: `${LOG}rows.toSorted((a, b) => (Number(b[4]) || 0) - (Number(a[4]) || 0)).slice(0, 5)`
  },
  { name: 'loop of 50: words in all notes', code: `${ALL_NOTES}all.join(' ').split(/\\s+/).length` },
  { name: 'loop of 50: notes with a word', code: `${ALL_NOTES}notes.filter((_, at) => all[at].includes('urgent'))` },
  {
    name: 'loop of 50: lines that occur twice',
    code: `${ALL_NOTES}const seen = new Map(); for (const line of all.join('\\n').split('\\n')) seen.set(line, (seen.get(line) ?? 0) + 1)\n;[...seen.values()].filter((times) => times > 1).length`
  },
  { name: 'loop of 50: first words', code: `${ALL_NOTES}all.map((note) => note.split(' ')[0]).join(' ')` },
  {
    name: 'loop of 50: the largest file',
    code: `${TEXT}const infos = await Promise.all(notes.map(async (path) => ({ path, size: Number(/size: (\\d+)/.exec(text(await tools.filesystem.get_file_info({ path: 'FOLDER/' + path })))?.[1]) })))\ninfos.toSorted((a, b) => b.size - a.size)[0]`
  },
  {
    name: 'loop of 50: sums',
    code: `let sum = 0\nfor (let n = 1; n <= 50; n++) sum = Number(/is (\\d+)/.exec(await tools.everything['get-sum']({ a: sum, b: n }))?.[1])\nsum`
  },
  {
    name: 'loop of 50: echoes at once',
    code: `(await Promise.all(Array.from({ length: 50 }, (_, n) => tools.everything.echo({ message: 'm' + n })))).length`
  },
  {
    name: 'loop of 50: observations of people',
    code: `const { entities } = await tools.memory.read_graph()\nlet count = 0\nfor (const { name } of entities) count += (await tools.memory.open_nodes({ names: [name] })).entities[0].observations.length\ncount`
  },
  {
    name: 'loop of 20: searches',
    code: `const found = []\nfor (let n = 0; n < 20; n++) found.push((await tools.memory.search_nodes({ query: 'person ' + n + ' ' })).entities.length)\nfound`
  },
  {
    name: 'join: people without notes',
    code: `${TEXT}const { entities } = await tools.memory.read_graph()\nconst files = text(await tools.filesystem.list_directory({ path: 'FOLDER/notes' }))\nentities.filter((_, at) => !files.includes('n' + at + '.txt ')).length`
  },
  {
    name: 'join: people and their notes',
    code: `${ALL_NOTES}const { entities } = await tools.memory.read_graph()\nentities.map(({ name }, at) => ({ name, words: all[at].split(/\\s+/).length })).filter(({ words }) => words > 140)`
  },
  {
    name: 'join: reports of three cities into a file name',
    code: `const cities = ['New York', 'Chicago', 'Los Angeles']\nconst weather = await Promise.all(cities.map((location) => tools.everything['get-structured-content']({ location })))\nweather.map(({ temperature }, at) => cities[at] + ' ' + temperature)`
  },
  {
    name: 'retry: a file that is not there',
    code: `${TEXT}let tries = 0\nlet found\nwhile (found === undefined && tries < 3) { tries++; found = await read(tries < 3 ? 'missing.txt' : 'notes/n1.txt').catch(() => undefined) }\n;({ tries, chars: found.length })`
  },
  {
    name: 'retry: each note or its successor',
    code: `${TEXT}let chars = 0\nfor (let at = 0; at < 20; at++) chars += (await read('gone/n' + at + '.txt').catch(() => read(notes[at]))).length\nchars`
  },
  {
    name: 'write: one entity for every fifth note',
    code: `${ALL_NOTES}const entities = all.filter((_, at) => at % 5 === 0).map((note, at) => ({ name: 'note ' + at, entityType: 'note', observations: [note.slice(0, 40)] }))\nawait tools.memory.create_entities({ entities })\nentities.length`
  },
  {
    name: 'write: three observations at once',
    code: `await Promise.all([1, 2, 3].map((n) => tools.memory.add_observations({ observations: [{ entityName: 'person ' + n + ' x', contents: ['seen'] }] })))\n'done'`
  }
]

const WORDS = 'alpha beta gamma delta report urgent meeting budget review plan'.split(' ')

/** The files and the graph that the tasks are about. The same for each way. */
export function prepareTasks(folder: string): void {
  mkdirSync(join(folder, 'notes'), { recursive: true })
  const word = (seed: number) => WORDS[(seed * 7919) % WORDS.length] ?? ''
  for (let at = 0; at < 50; at++) {
    const words = Array.from({ length: 100 + at }, (_, n) => word(at * 31 + n) + (n % 12 === 11 ? '\n' : ''))
    writeFileSync(join(folder, `notes/n${at}.txt`), words.join(' '))
  }
  const rows = Array.from({ length: 110_000 }, (_, n) => {
    const level = n % 97 === 0 ? 'ERROR' : 'INFO'
    return `2026-01-01T00:00:${String(n % 60).padStart(2, '0')}Z,user${n % 500},${level},E${n % 7},${(n * 37) % 9973},ok`
  })
  writeFileSync(join(folder, 'log.csv'), rows.join('\n'))
  const people = Array.from({ length: 50 }, (_, n) =>
    JSON.stringify({
      type: 'entity',
      name: `person ${n} x`,
      entityType: 'person',
      observations: [`likes ${word(n)}`, `knows ${word(n + 3)}`]
    })
  )
  writeFileSync(join(folder, 'memory.jsonl'), people.join('\n'))
}
