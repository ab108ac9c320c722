import { expect, it } from 'vitest'
import { checkParams } from './check-params.ts'

it('treats an inherited property as a missing parameter', () => {
  const schema = { type: 'object', required: ['constructor', 'toString'] }
  expect(checkParams(schema, {}).map(({ path }) => path)).toEqual(['constructor', 'toString'])
  expect(checkParams(schema, { constructor: 'x', toString: 'y' })).toEqual([])
})
