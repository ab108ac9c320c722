import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WORKSPACE } from '../../contract/own-sources.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { approvalHash, claimsOf, definitionHash, offerTools } from './offered-tool.ts'

const inputSchema = { type: 'object' }

describe('offered tools', () => {
  it('have unique names that are valid for every provider', () => {
    const name = fc.oneof(fc.string({ minLength: 1, maxLength: 100 }), fc.constantFrom('a', 'a_2', 'b b', 'b_b'))
    const servers = fc.array(fc.record({ server: name, tools: fc.array(name, { maxLength: 5 }) }), { maxLength: 4 })
    fc.assert(
      fc.property(servers, (list) => {
        const taken = new Set<string>()
        const offered = list.flatMap(({ server, tools }) =>
          offerTools(
            server,
            tools.map((tool) => ({ name: tool, inputSchema })),
            taken
          )
        )
        expect(new Set(offered.map(({ modelName }) => modelName)).size).toBe(offered.length)
        for (const { modelName } of offered) expect(modelName).toMatch(/^[\w-]{1,64}$/)
      })
    )
  })

  it("keep their names in the sandbox, and are prefixed with the server's name otherwise", () => {
    const names = (server: string) => offerTools(server, [{ name: 'read_file', inputSchema }], new Set())
    expect(names(WORKSPACE)[0]?.modelName).toBe('read_file')
    expect(names('files')[0]?.modelName).toBe('files__read_file')
  })

  it('leave out duplicates and definitions that are too large', () => {
    const huge = { type: 'object', description: 'x'.repeat(60_000) }
    const definitions = [
      { name: 'a', inputSchema },
      { name: 'a', description: 'another', inputSchema },
      { name: 'b', inputSchema: huge }
    ]
    expect(offerTools('s', definitions, new Set()).map(({ name, description }) => [name, description])).toEqual([
      ['a', '']
    ])
  })
})

describe('what a server says about its tool', () => {
  const claims = (definition: object) => {
    const [tool] = offerTools('s', [{ name: 'a', inputSchema, ...definition }], new Set())
    return tool && claimsOf(tool)
  }
  it('is taken as it is, within a limit, and only if it makes sense', () => {
    expect(claims({ description: 'Reads.', annotations: { readOnlyHint: true, destructiveHint: 'no' } })).toEqual({
      description: 'Reads.',
      readOnly: true
    })
    const long = claims({ description: `${'x'.repeat(999)}🤖` })
    expect(long).toEqual({ description: 'x'.repeat(999), isCut: true })
  })
})

describe('hashes', () => {
  const definition = { name: 'n', description: 'd', inputSchema }
  it.each([
    { ...definition, name: 'm' },
    { ...definition, description: 'e' },
    { ...definition, inputSchema: { type: 'object', properties: {} } }
  ])('of a definition change with its fields: %j', (other) => {
    expect(definitionHash(other)).not.toBe(definitionHash(definition))
  })

  it('of an approval bind session, call, definition and arguments', () => {
    const parts = { sessionId: 's', callId: 'c', definition: 'd', args: { a: 1 } }
    const others = [{ sessionId: 'x' }, { callId: 'x' }, { definition: 'x' }, { args: { a: 2 } }, { args: { a: '1' } }]
    const hashes = [parts, ...others.map((other) => ({ ...parts, ...other }))].map(approvalHash)
    expect(new Set(hashes).size).toBe(hashes.length)
  })

  it('depend on the value, not on the order of its keys', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(JSON.parse(canonicalJson(a))).toEqual(JSON.parse(JSON.stringify(a)))
        const shuffled = JSON.parse(JSON.stringify(a), (_, value) =>
          value && typeof value === 'object' && !Array.isArray(value)
            ? Object.fromEntries(Object.entries(value).reverse())
            : value
        )
        expect(canonicalJson(shuffled)).toBe(canonicalJson(a))
        if (canonicalJson(a) === canonicalJson(b))
          expect(JSON.parse(canonicalJson(b))).toEqual(JSON.parse(canonicalJson(a)))
      })
    )
  })
})
