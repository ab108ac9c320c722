import { expect, it } from 'vitest'
import { checkParams } from './check-params.ts'

it('takes a parameter for missing that only every object has', () => {
  const schema = { type: 'object', required: ['constructor', 'toString'] }
  expect(checkParams(schema, {}).map(({ path }) => path)).toEqual(['constructor', 'toString'])
  expect(checkParams(schema, { constructor: 'x', toString: 'y' })).toEqual([])
})
