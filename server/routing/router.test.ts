import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RoutableTool, Router } from './port.ts'
import { createRouter } from './router.ts'
import { AT_ONCE } from './usage/usage-memory.ts'

const tool = (server: string, name: string, description = '', params?: string): RoutableTool => ({
  server,
  name,
  description,
  params
})

const SERVERS: Record<string, RoutableTool[]> = {
  files: [
    tool('files', 'read_file', 'Read the contents of a file as text'),
    tool('files', 'write_file', 'Create a file or replace its contents'),
    tool('files', 'list_directory', 'List what is in a directory'),
    tool('files', 'move_file', 'Move or rename files and directories')
  ],
  tracker: [
    tool('tracker', 'list_issues', 'List the issues of a repository'),
    tool('tracker', 'create_issue', 'Open a new issue in a repository', 'title: short text\nlabels: names'),
    tool('tracker', 'search', 'Search code, issues and users')
  ],
  sky: [
    tool('sky', 'get-forecast', 'Weather forecast for a city over the next days'),
    tool('sky', 'getAlerts', 'Active weather alerts for a region')
  ],
  words: [tool('words', 'translate_text', 'Translate text from one language into another')]
}
const REQUESTS = [
  'what will the weather be in Oslo tomorrow?',
  'rename notes.txt to old.txt',
  'open a bug about the broken login',
  'say "good morning" in Japanese',
  'use get-forecast for Bergen',
  'with tracker: search for parser',
  'zzz qqq',
  ''
]

function build(names = Object.keys(SERVERS)): Router {
  const router = createRouter({ schedule: AT_ONCE })
  for (const name of names) router.setServer(name, SERVERS[name] ?? [])
  return router
}
const first = (router: Router, request: string, server?: string) => {
  const match = router.find(request, server === undefined ? {} : { server }).matches[0]
  return match && `${match.server}/${match.tool}`
}

describe('finds', () => {
  it.each([
    ['what will the weather be in Oslo tomorrow?', 'sky/get-forecast'],
    ['are there storm alerts for Bavaria', 'sky/getAlerts'],
    ['rename notes.txt to old.txt', 'files/move_file'],
    ['show me what is in the folder', 'files/list_directory'],
    ['open a new issue about the broken login', 'tracker/create_issue'],
    ['translate "good morning" into Japanese', 'words/translate_text'],
    ['tranlsate this sentense', 'words/translate_text'],
    ['I am moving house next week and rather busy. Please read the file todo.txt for me.', 'files/read_file']
  ])('%s', (request, expected) => {
    expect(first(build(), request)).toBe(expected)
  })

  it('other languages: cognates and names still match, and nothing throws', () => {
    expect(first(build(), 'Wetter Forecast für München')).toBe('sky/get-forecast')
    for (const request of ['请把这句话翻译成英文', 'погода в Москве', 'ما هو الطقس', '🌧️?', '\u0000\ud800']) {
      const { matches, abstained } = build().find(request)
      expect(abstained || matches.length > 0).toBe(true)
    }
  })

  it('within one server when asked to', () => {
    expect(first(build(), 'weather forecast', 'files')).toMatch(/^files\//)
    expect(build().find('weather', { server: 'nobody' })).toEqual({ matches: [], abstained: true })
  })

  it('by what the registry says about a server', () => {
    const router = build()
    router.setServer('dept', [tool('dept', 'run', 'Runs it')], {
      keywords: ['payroll'],
      examples: ['pay the salaries']
    })
    expect(first(router, 'start the payroll')).toBe('dept/run')
    expect(first(router, 'please pay all salaries')).toBe('dept/run')
  })
})

describe('an exact name always wins', () => {
  const words = fc.constantFrom('weather', 'file', 'issue', 'please', 'translate', 'list', 'forecast', 'move', 'the')
  const spelling = fc.constantFrom('-', '_', ' ', '.')
  it('whatever else the request says', () => {
    const router = build()
    const tools = Object.values(SERVERS).flat()
    fc.assert(
      fc.property(
        fc.constantFrom(...tools),
        spelling,
        fc.array(words),
        fc.array(words),
        (wanted, by, before, after) => {
          const name = wanted.name
            .replace(/([a-z])([A-Z])/g, '$1-$2')
            .split(/[-_]/)
            .join(by)
          const { matches } = router.find(`${before.join(' ')}. Use ${name} to ${after.join(' ')}`)
          expect(matches[0]).toMatchObject({ server: wanted.server, tool: wanted.name })
          expect(matches[0]?.confidence).toBeGreaterThan(0.9)
        }
      )
    )
  })

  it('server/tool picks between tools of one name', () => {
    const router = build()
    router.setServer('other', [tool('other', 'read_file', 'Read the contents of a file as text')])
    expect(first(router, 'other/read_file of notes.txt')).toBe('other/read_file')
    expect(first(router, 'files/read_file of notes.txt')).toBe('files/read_file')
    const { matches } = router.find('use read_file')
    expect(matches.slice(0, 2).map((match) => match.tool)).toEqual(['read_file', 'read_file'])
    expect(matches[0]?.confidence).toBeLessThan(0.9)
  })

  it('a named server restricts to its tools', () => {
    const { matches } = build().find('with tracker: weather forecast of files')
    expect(new Set(matches.map((match) => match.server))).toEqual(new Set(['tracker']))
  })
})

describe('confidence', () => {
  it('lies between 0 and 1 and never grows down the list', () => {
    const router = build()
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...REQUESTS.join(' ').split(' ')), { maxLength: 30 }), (parts) => {
        const { matches } = router.find(parts.join(' '), { limit: 50 })
        matches.forEach(({ confidence }, at) => {
          expect(confidence).toBeGreaterThanOrEqual(0)
          expect(confidence).toBeLessThanOrEqual(at === 0 ? 1 : (matches[at - 1]?.confidence ?? 0))
        })
      })
    )
  })

  it('the threshold decides about abstaining, and about nothing else', () => {
    const router = build()
    for (const request of REQUESTS) {
      const { matches } = router.find(request, { threshold: 0 })
      const sure = matches[0]?.confidence ?? 0
      expect(router.find(request, { threshold: sure })).toEqual({ matches, abstained: matches.length === 0 })
      expect(router.find(request, { threshold: sure + 1e-9 })).toEqual({ matches, abstained: true })
    }
  })

  it('is low if no tool fits', () => {
    for (const request of ['zzz qqq', '', 'who won the war of 1812']) expect(build().find(request).abstained).toBe(true)
    expect(build().find('weather forecast for Oslo').abstained).toBe(false)
  })

  it('of the options sets the default', () => {
    const router = createRouter({ threshold: 1.1 })
    router.setServer('sky', SERVERS.sky ?? [])
    expect(router.find('use get-forecast').abstained).toBe(true)
  })

  it('limit is respected, and bounded', () => {
    const router = build()
    expect(router.find('file', { limit: 1 }).matches).toHaveLength(1)
    for (const limit of [0, -1, Number.NaN, 1e9]) {
      expect(router.find('file', { limit }).matches.length).toBeGreaterThan(0)
      expect(router.find('file', { limit }).matches.length).toBeLessThanOrEqual(50)
    }
  })
})

describe('servers come and go', () => {
  type Step = { server: string; tools: number | undefined }
  const steps = fc.array(
    fc.record<Step>({
      server: fc.constantFrom(...Object.keys(SERVERS), '__proto__', 'constructor'),
      tools: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined })
    }),
    { maxLength: 15 }
  )
  it('any history gives the same result as a fresh index', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const lived = createRouter({ schedule: AT_ONCE })
        const left = new Map<string, RoutableTool[]>()
        for (const { server, tools: count } of history) {
          const tools = (Object.hasOwn(SERVERS, server) ? SERVERS[server] : SERVERS.files)?.slice(0, count) ?? []
          if (count === undefined) lived.removeServer(server)
          else lived.setServer(server, tools)
          if (count === undefined) left.delete(server)
          else left.set(server, tools)
          // Answers between the changes must not linger.
          lived.find('open a new file issue about the weather')
        }
        const fresh = createRouter({ schedule: AT_ONCE })
        for (const [server, tools] of [...left].reverse()) fresh.setServer(server, tools)
        for (const request of REQUESTS) {
          const one = lived.find(request, { limit: 50 })
          const other = fresh.find(request, { limit: 50 })
          expect(one.matches.map((match) => [match.server, match.tool])).toEqual(
            other.matches.map((match) => [match.server, match.tool])
          )
          one.matches.forEach((match, at) => {
            expect(match.confidence).toBeCloseTo(other.matches[at]?.confidence ?? -1, 9)
          })
        }
      })
    )
  })

  it('tools belong to the server they are set for, and the last of two with one name counts', () => {
    const router = createRouter({ schedule: AT_ONCE })
    router.setServer('real', [tool('liar', 'go', 'old words'), tool('liar', 'go', 'Start the engine')])
    const { matches } = router.find('start the engine')
    expect(matches).toHaveLength(1)
    expect(matches[0]).toMatchObject({ server: 'real', tool: 'go', description: 'Start the engine' })
  })
})

describe('learns from use', () => {
  it('what was chosen comes first next time, until it is cleared', () => {
    const router = build()
    const request = 'how is the outlook for my picnic'
    const before = router.find(request)
    router.learn({ request: 'outlook for the picnic on Sunday', server: 'sky', tool: 'get-forecast', at: 1 })
    expect(first(router, request)).toBe('sky/get-forecast')
    expect(router.find(request).matches[0]?.confidence).toBeGreaterThan(before.matches[0]?.confidence ?? 0)
    expect(router.usage()).toHaveLength(1)
    router.forgetUsage()
    expect(router.usage()).toEqual([])
    expect(router.find(request)).toEqual(before)
  })

  it('examples of tools that are not there change nothing until they are', () => {
    const router = build()
    const before = router.find('rename notes.txt')
    for (const at of [1, 2, 3]) router.learn({ request: 'rename notes.txt', server: 'gone', tool: 'gone', at })
    expect(router.find('rename notes.txt')).toEqual(before)
    router.setServer('gone', [tool('gone', 'gone', 'nothing in common')])
    expect(first(router, 'rename notes.txt')).toBe('gone/gone')
  })

  it('never outvotes an exact name', () => {
    const router = build()
    for (const at of [1, 2, 3]) router.learn({ request: 'use read_file now', server: 'sky', tool: 'getAlerts', at })
    expect(first(router, 'use read_file now')).toBe('files/read_file')
  })

  it('keeps no more than the limit', () => {
    const router = createRouter({ maxExamples: 2, schedule: AT_ONCE })
    for (const at of [1, 2, 3]) router.learn({ request: `request ${at}`, server: 's', tool: 't', at })
    expect(router.usage().map((example) => example.at)).toEqual([2, 3])
  })
})

describe('hostile input', () => {
  it('takes any text as names, descriptions and requests', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', '', '.*+?^{}()|[]\\')
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text, text), { maxLength: 6 }), text, (tools, request) => {
        const router = createRouter({ schedule: AT_ONCE })
        for (const [server, name, description] of tools)
          router.setServer(server, [tool(server, name, description, name)])
        router.learn({ request, server: request, tool: request, at: 0 })
        const { matches } = router.find(`use ${request}`)
        for (const match of matches) expect(tools.some(([server]) => server === match.server)).toBe(true)
        for (const [server] of tools) router.removeServer(server)
        expect(router.find(request).matches).toEqual([])
      })
    )
  })

  it('reads a bounded part of a huge request and of huge descriptions', () => {
    const router = build()
    router.setServer('huge', [tool('huge', 'huge', 'blah '.repeat(200_000), 'x'.repeat(1_000_000))], {
      examples: ['y'.repeat(1_000_000)]
    })
    const { matches } = router.find('weather forecast for Oslo. '.concat('blub '.repeat(200_000)))
    expect(matches[0]).toMatchObject({ tool: 'get-forecast' })
    for (const match of router.find('huge blah').matches) expect(match.description.length).toBeLessThan(10_000)
  })

  it('a description stuffed with every keyword does not win', () => {
    const router = build()
    const everything = Object.values(SERVERS)
      .flat()
      .map(({ name, description }) => `${name} ${description}`)
    const stuffed = [...everything, ...everything, ...everything].join(' ')
    router.setServer('spam', [tool('spam', 'helper', stuffed)])
    for (const request of [
      'weather forecast for Oslo',
      'translate text into German',
      'list the issues',
      'read the file'
    ]) {
      expect(first(router, request)).not.toMatch(/^spam/)
    }
  })
})

describe('values in a request', () => {
  const built = createRouter()
  built.setServer('desk', [
    { server: 'desk', name: 'read_text', description: 'Read a text', params: 'path Where it is' },
    { server: 'desk', name: 'read_monitor', description: 'Read the log of the monitor 17' },
    { server: 'desk', name: 'add', description: 'Adds two numbers, as in plus', params: 'a\nb' }
  ])
  const first = (request: string) => built.find(request).matches[0]?.tool

  it('are no words: a folder or number that a description contains finds no tool', () => {
    expect(first('read /srv/monitor/log/notes')).toBe('read_text')
    expect(first('what is 17 plus 25')).toBe('add')
  })

  it('are names if they are written like one', () => {
    expect(first('read the monitor 17')).toBe('read_monitor')
  })
})
