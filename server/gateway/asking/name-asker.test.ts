import { describe, expect, it } from 'vitest'
import { namedQuestion, OWN_QUESTION, withNamedQuestions } from './name-asker.ts'

const ask = (message: unknown, requestedSchema?: unknown) =>
  namedQuestion('x', {
    method: 'elicitation/create',
    params: { message, ...(requestedSchema ? { requestedSchema } : {}) }
  }).params
const linesOf = (message: unknown) => String(ask(message).message).split('\n')

describe('a named question', () => {
  it.each(['\n', '\r', '\r\n', '\u2028', '\u2029', '\u0085', '\v', '\f'])('has no unmarked line after %j', (end) => {
    const lines = linesOf(`Hello${end}${OWN_QUESTION}`)
    expect(lines).toEqual([
      'Server "x" asks:',
      '> Hello',
      `> ${OWN_QUESTION}`,
      expect.stringMatching(/^This was asked by/)
    ])
  })

  it('does not push its first line out of sight', () => {
    const lines = linesOf(`${'\n'.repeat(5000)}a${' '.repeat(500)}${OWN_QUESTION}\n${'b\n'.repeat(5000)}`)
    expect(lines.length).toBeLessThan(210)
    expect(lines.find((line) => line.includes(OWN_QUESTION))?.length).toBeLessThan(80)
    expect(lines.at(-1)).toContain('longer than what is shown')
  })

  it('keeps the names and values of the answer, and shows hidden characters in them', () => {
    const schema = {
      type: 'object',
      properties: { 'a\nb': { type: 'string', enum: ['1\n', '2'] }, c: { title: 'd\ne' } }
    }
    const { requestedSchema } = ask('?', schema)
    expect(requestedSchema).toEqual({
      type: 'object',
      properties: {
        'a\nb': { title: 'Server "x": a\\nb', type: 'string', enum: ['1\n', '2'] },
        c: { title: 'Server "x": d\\ne' }
      }
    })
  })

  it('names the server in each title and description of its form', () => {
    const choice = { type: 'string', title: OWN_QUESTION, description: OWN_QUESTION, enum: ['a'], enumNames: ['Yes'] }
    const oneOf = [{ const: 'a', title: 'Approve' }]
    const { requestedSchema } = ask('?', {
      type: 'object',
      properties: { [OWN_QUESTION]: {}, choice, other: { oneOf } }
    })
    expect(requestedSchema).toMatchObject({
      properties: {
        [OWN_QUESTION]: { title: `Server "x": ${OWN_QUESTION}` },
        choice: {
          title: `Server "x": ${OWN_QUESTION}`,
          description: `Server "x": ${OWN_QUESTION}`,
          enum: ['a'],
          enumNames: ['Server "x": Yes']
        },
        other: { oneOf: [{ const: 'a', title: 'Server "x": Approve' }] }
      }
    })
  })

  // Checked: if a title that is not text stays, the form shows the property's name without the server's.
  it('names the server where a title is not text, asks for no context of others, and passes on only web addresses', () => {
    const properties = { [OWN_QUESTION]: { title: null, description: ['x'] } }
    const { requestedSchema } = ask('?', { type: 'object', properties })
    expect(requestedSchema).toEqual({
      type: 'object',
      properties: { [OWN_QUESTION]: { title: `Server "x": ${OWN_QUESTION}` } }
    })
    const sampling = { method: 'sampling/createMessage', params: { includeContext: 'allServers' } }
    expect(namedQuestion('x', sampling).params).toMatchObject({ includeContext: 'none' })
    const opening = (url: unknown) => namedQuestion('x', { method: 'elicitation/create', params: { mode: 'url', url } })
    for (const url of ['javascript:alert(1)', 'file:///etc/passwd', null]) expect(() => opening(url)).toThrow(/https:/)
    expect(opening('https://x.example/a').params).toMatchObject({ url: 'https://x.example/a' })
  })

  it('treats a value that is not text as empty', () => {
    expect(linesOf(undefined)).toEqual(['Server "x" asks:', '> ', expect.stringMatching(/^This was/)])
    expect(linesOf({ toString: 'no' })).toHaveLength(3)
  })

  it('leaves roots requests and results without questions unchanged', () => {
    const roots = { method: 'roots/list', params: {} }
    expect(namedQuestion('x', roots)).toEqual(roots)
    const result = { content: [], resultType: 'complete' }
    expect(withNamedQuestions('x', result)).toBe(result)
    const odd = { inputRequests: { a: 1, b: null, c: roots } }
    expect(withNamedQuestions('x', odd)).toEqual(odd)
  })
})
