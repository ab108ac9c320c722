import { expect, it } from 'vitest'
import { LOCAL } from '../../connections/connections.fixture.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { missingDefaults } from './default-values.ts'
import { resolveParams } from './resolve-params.ts'

const schema = (property: Record<string, unknown>, required = ['scale']) => ({
  properties: { scale: property },
  required
})

it('gives required parameters the default of their schema, and only those', () => {
  const choice = { type: 'string', enum: ['css', 'device'], default: 'css' }
  expect(missingDefaults(schema(choice), {})).toEqual({ scale: 'css' })
  expect(missingDefaults(schema(choice), { scale: 'device' })).toEqual({})
  expect(missingDefaults(schema(choice, []), {})).toEqual({})
  expect(missingDefaults(schema({ type: 'string' }), {})).toEqual({})
  expect(missingDefaults(schema({ type: 'string', default: 2 }), {})).toEqual({})
  expect(missingDefaults(schema(choice, ['__proto__', 'constructor']), {})).toEqual({})
})

// Seen failing before: a tool that reads asked for "scale", although its server has a default for it.
it('a sentence leaves them to the tool only if it reads', async () => {
  const inputSchema = schema({ type: 'string', default: 'css' })
  const tool = { name: 'take_picture', description: 'Takes a picture', inputSchema, hash: 'x' }
  const context = { caller: LOCAL, signal: new AbortController().signal }
  const resolve = (isRead: boolean) =>
    resolveParams({} as GatewayServices, { server: 'camera', tool, isRead }, { request: 'take a picture' }, context)
  expect(await resolve(true)).toMatchObject({ params: { scale: 'css' }, problems: [], filledBy: { scale: 'default' } })
  expect(await resolve(false)).toMatchObject({ params: {}, problems: [{ path: 'scale', missing: true }] })
})
