import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runProgram } from './fake-orchestrator.ts'

const resultOf = async (...given: Parameters<typeof runProgram>) => {
  const { end } = await runProgram(...given)
  if (end.type !== 'done') throw new Error(end.message)
  return JSON.parse(end.value)
}

describe('a program', () => {
  it('calls tools, gets results and errors, and returns its last expression', async () => {
    const code = `type Row = { n: number }
const rows: Row[] = await Promise.all([tools.crm.read({ id: 1 }), tools['my-crm']['get-it']()])
console.log(rows, new Date().toISOString())
const failed = await tools.crm.fail().catch((error) => [error instanceof ToolError, error.code, error.message])
progress('nearly')
;({ rows, failed })`
    const { end, calls, logs } = await runProgram(code, ({ n, tool }) =>
      tool === 'fail' ? { ok: false, code: 'denied', message: 'no' } : { ok: true, value: `{"n":${n}}` }
    )
    expect(end).toEqual({
      type: 'done',
      token: 't',
      value: '{"rows":[{"n":1},{"n":2}],"failed":[true,"denied","no"]}'
    })
    expect(calls).toMatchObject([
      { n: 1, kind: 'tool', server: 'crm', tool: 'read', args: '{"id":1}', line: 2 },
      { n: 2, server: 'my-crm', tool: 'get-it', args: '{}', line: 2 },
      { n: 3, tool: 'fail', line: 4 }
    ])
    expect(logs).toEqual(['[{"n":1},{"n":2}] 1970-01-01T00:00:03.000Z'])
  })

  it.each([
    ['const x: = 1', { code: 'code_syntax', line: 1 }],
    [
      '\n\nthrow new TypeError("bad")',
      { code: 'code_failed', line: 3, message: expect.stringMatching(/^TypeError: bad\n/) }
    ],
    ['await new Promise(() => {})', { code: 'code_stuck' }],
    ['await tools.a.b({ deep: 1n })', { code: 'code_failed', message: expect.stringContaining('BigInt') }]
  ])('says what is wrong with %j', async (code, expected) => {
    expect((await runProgram(code)).end).toMatchObject({ type: 'failed', ...expected })
  })
})

// Checked: if the end of the program ends the run, the calls are never answered.
describe('the end of a program', () => {
  it('waits for calls that the program did not wait for, and for those that follow from them', async () => {
    const code = `tools.a.write({ n: 1 }).then(() => tools.a.write({ n: 2 }))
setInterval(() => {}, 1000)
'value'`
    const given: number[] = []
    const { end, calls } = await runProgram(code, ({ n, kind }, reply) => {
      if (kind === 'sleep') return undefined
      setImmediate(() => {
        given.push(n)
        reply(n, { ok: true, value: 'null' })
      })
      return undefined
    })
    expect(end).toMatchObject({ type: 'done', value: '"value"' })
    expect(calls.filter(({ kind }) => kind === 'tool').map(({ args }) => args)).toEqual(['{"n":1}', '{"n":2}'])
    expect(given).toHaveLength(2)
  })

  it('says that a call failed if nobody noticed', async () => {
    const fail = () => ({ ok: false as const, code: 'denied', message: 'no' })
    const seen = await runProgram('tools.a.write(); await tools.a.read().catch(() => 1); 5', fail)
    expect(seen.end).toMatchObject({ type: 'done', value: '5' })
    expect(seen.logs).toEqual(['[1 failed without being noticed: use await or catch.]'])
    expect((await runProgram('await tools.a.read().catch(() => 1)', fail)).logs).toEqual([])
  })

  it.each([
    ['({ n: 12n })', '{"n":"12"}', 'bigint'],
    ['const a: any = {}; a.a = a; a', '"[object Object]"', 'not JSON: TypeError'],
    ['({ m: new Map([[1, 2]]) })', '{"m":{}}', 'Map']
  ])('says that the value of %j is not JSON', async (code, value, hint) => {
    const { end, logs } = await runProgram(code)
    expect(end).toMatchObject({ type: 'done', value })
    expect(logs).toEqual([expect.stringContaining(hint)])
  })

  it('returns a value with too many levels as text, and gives an error for such arguments', async () => {
    const nested =
      'const tree = (levels: number) => { const top: any = {}; let at = top; for (let n = 1; n < levels; n++) at = at.x = {}; return top }\n'
    const failed = 'await tools.a.b(tree(65)).catch((error) => [error.code, error.message].join())'
    const { end, calls, logs } = await runProgram(`${nested}const said = ${failed}
await tools.a.b(tree(64))
console.log(said)
tree(65)`)
    expect(logs).toEqual([
      'code_too_much,Arguments have at most 64 levels.',
      '[The value has more than 64 levels: it is returned as text.]'
    ])
    expect(calls).toHaveLength(1)
    if (end.type !== 'done') throw new Error(end.message)
    expect(JSON.parse(end.value)).toBe(`${'{"x":'.repeat(64)}{}${'}'.repeat(64)}`)
    expect((await runProgram(`${nested}({ text: '{['.repeat(100) })`)).logs).toEqual([])
  })

  it('says where an error is, in lines that the program has', async () => {
    const { end } = await runProgram('null.x')
    expect(end).toMatchObject({ type: 'failed', line: 1, message: expect.not.stringMatching(/program\.ts:[23]/) })
  })

  it.each(['Object.keys(tools)', 'Object.keys(tools.crm)'])('says how to find tools instead of %s', async (code) => {
    expect((await runProgram(code)).end).toMatchObject({ type: 'failed', message: expect.stringContaining('search') })
  })
})

describe('time and chance', () => {
  const code = `const began = Date.now()
await new Promise((done) => setTimeout(done, 3_600_000))
const ticks: number[] = []
await new Promise<void>((done) => { const id = setInterval(() => { ticks.push(Date.now()); if (ticks.length === 2) { clearInterval(id); done() } }, 5) })
;[Date.now() - began, ticks, Math.random(), new Intl.DateTimeFormat('en').format(), new Intl.DateTimeFormat('en').formatToParts().length, Date().slice(0, 15)]`

  it('are the same every time, and cost no waiting', async () => {
    const [first, second] = [await resultOf(code), await resultOf(code)]
    expect(first).toEqual(second)
    expect(first.slice(3)).toEqual(['1/1/1970', 5, 'Thu Jan 01 1970'])
  })
})

describe('a hostile program', () => {
  it('finds nothing but our API, also through errors, constructors and imports', async () => {
    const value = await resultOf(`const found: string[] = []
const reach = (name: string, get: () => unknown) => { try { get(); found.push(name) } catch (error) { if (!(error instanceof Error)) found.push(name + ' threw an object from outside') } }
for (const name of ['process', 'require', 'fetch', 'Buffer', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'performance', 'crypto', 'global'])
  if (name in globalThis) found.push(name)
reach('eval', () => eval('1'))
reach('Function', () => Function('return this')())
reach('constructor', () => tools.a.b.constructor('return process')())
reach('async constructor', () => (async () => {}).constructor('return 1')())
await import('node:fs').then(() => found.push('import'), (error) => { if (typeof error !== 'string') found.push('import threw an object') })
const overflow = () => { try { overflow() } catch (error) { if (!(error instanceof Error)) found.push('overflow'); try { console.log('x') } catch (other) { if (!(other instanceof Error)) found.push('overflow in our API') } } }
overflow()
found`)
    expect(value).toEqual([])
  })

  // Checked: without frozen built-ins, the program finds more than 50 that it can change.
  it('can change nothing outside through the errors that Node throws at the end of the stack', async () => {
    const value = await resultOf(
      `const foreign = new Set<object>()
const isForeign = (what: unknown): what is object => what !== null && /object|function/.test(typeof what) && !(what instanceof Object)
const look = (what: unknown) => { if (isForeign(what)) foreign.add(what) }
const all: Promise<unknown>[] = []
let count = 0
const uses = [() => import('x'), () => tools.a.b(), () => console.log('x'), () => progress('p'), () => search('x'), () => setTimeout(look, 1), () => new Date()]
const dive = (): void => {
  try { dive() } catch (error) { look(error) }
  if (count++ > 200) return
  for (const use of uses) try { const given: any = use(); look(given); if (given?.then) all.push(given) } catch (error) { look(error) }
}
dive()
for (const each of await Promise.allSettled(all)) look((each as any).reason ?? (each as any).value)
const seen = new Set<object>()
const open: string[] = []
const walk = (what: unknown, path: string): void => {
  if (what === null || !/object|function/.test(typeof what) || seen.has(what as object)) return
  seen.add(what as object)
  // The error itself, and the accessor of its stack, which nobody outside looks at.
  if (!/^error(\\.stack)?$/.test(path) && !Object.isFrozen(what)) open.push(path)
  walk(Object.getPrototypeOf(what), path + '.__proto__')
  for (const key of Reflect.ownKeys(what as object)) {
    const { value, get, set } = Object.getOwnPropertyDescriptor(what, key) ?? {}
    for (const part of [value, get, set]) walk(part, path + '.' + String(key))
  }
}
for (const error of foreign) walk(error, 'error')
;[open, all.length > 100]`,
      ({ n }) =>
        n % 2 ? { ok: true, value: '{"then":1,"__proto__":{"x":1}}' } : { ok: false, code: 'x', message: 'no' }
    )
    expect(value).toEqual([[], true])
  })

  it('gets errors of its own realm from our functions at the end of the stack', async () => {
    const value = await resultOf(`let foreign = 0
const look = (what: unknown) => { if (!(what instanceof Error)) foreign++ }
let count = 0
const dive = (): void => {
  try { dive() } catch (error) { look(error) }
  if (count++ > 200) return
  for (const use of [() => tools.a.b(), () => search('x'), () => setTimeout(look, 1), () => console.log('x')]) try { (use() as any)?.catch?.(look) } catch (error) { look(error) }
}
dive()
foreign`)
    expect(value).toBe(0)
  })

  it('fools only itself with prototypes', async () => {
    const patched = await runProgram(
      `Array.prototype.push = () => 0
String.prototype.slice = () => 'forged'
Map.prototype.get = () => 'forged'
Object.prototype.get = () => 'forged'
Promise.prototype.then = () => 'forged'
tools.a.b({ x: 1 })
Object.prototype.toJSON = () => 'forged'
tools.a.b({ x: 1 })`
    )
    expect(patched.calls).toMatchObject([{ n: 1, server: 'a', tool: 'b', args: '{"x":1}', line: 6 }])
    expect(patched.end.type).toBe('failed')
    const { calls } = await runProgram(
      'Object.prototype.toJSON = () => ({ n: 99, server: "other" })\nawait tools.a.b({})'
    )
    expect(calls).toMatchObject([{ n: 1, server: 'a', tool: 'b', line: 2 }])
  })

  it('can not forge the line of a call', async () => {
    const value = await resultOf(
      `try { Error.prepareStackTrace = () => 'x' } catch {}
try { globalThis.Error = class {} } catch {}
const name = { ['x (program.ts:99:1)']: () => tools.a.b() }
await name['x (program.ts:99:1)']()`,
      ({ line }) => ({ ok: true, value: String(line) })
    )
    expect(value).toBe(3)
  })

  it('gets an error for arguments that are not an object, or too much in all, and goes on', async () => {
    const value = await resultOf(`const codes: string[] = []
const note = (error) => void codes.push(error.code)
await tools.a.b({ toJSON: () => [1] }).catch(note)
const x = 'x'.repeat(900_000)
for (let n = 0; n < 40; n++) await tools.a.b({ x }).catch(note)
codes`)
    expect(value).toEqual(['invalid_params', ...Array(14).fill('code_too_much')])
  })

  it('is stopped if it uses up its memory', async () => {
    const { end } = await runProgram('const all = []; for (;;) all.push(new Array(1e5).fill(all.length + 0.5))')
    expect(end).toMatchObject({ type: 'failed', code: 'code_memory' })
  })

  it.each([
    ['that never ends', 'for (;;) {}'],
    ['of promises that never ends', 'const next = async (): Promise<void> => { await 0; return next() }; await next()'],
    ['in the text of an error', 'throw { toJSON() { for (;;) {} } }']
  ])('is stopped in a loop %s when its CPU time is used up', async (_, code) => {
    const entry = fileURLToPath(new URL('short-cpu-time.fixture.ts', import.meta.url))
    const { end } = await runProgram(code, undefined, entry)
    expect(end).toMatchObject({ type: 'failed', code: 'code_cpu', message: expect.stringContaining('CPU time') })
  })

  it('can print without end, but only so much arrives', async () => {
    const { logs, end } = await runProgram('for (let n = 0; n < 1e5; n++) console.log("x".repeat(1000)); 1')
    expect(end.type).toBe('done')
    expect(logs.join('').length).toBeLessThan(210_000)
    expect(logs.at(-1)).toBe('[later output is left out]')
  })
})
