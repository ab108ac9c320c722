import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { AppError, isAppError } from '../../../lib/errors.ts'
import { registerProviderRoutes } from '../provider-routes.ts'
import { registerServerRoutes } from './server-routes.ts'

/** Routes for everyone with access: they show what the servers offer, and test whether one works. A chat starts servers too. */
const FOR_MEMBERS = ['GET /api/servers', 'GET /api/servers/:name', 'POST /api/servers/:name/test', 'GET /api/providers']
const FOR_ADMINISTRATORS = [
  'POST /api/servers',
  'PUT /api/servers/:name',
  'DELETE /api/servers/:name',
  'GET /api/servers/:name/entry',
  'PUT /api/servers/:name/rules',
  'POST /api/servers/:name/restart',
  'POST /api/servers/:name/accept',
  'POST /api/servers/:name/enable',
  'POST /api/servers/:name/disable',
  'GET /api/servers/:name/log',
  'GET /api/servers/:name/tools/:tool',
  'POST /api/servers/:name/call',
  'GET /api/servers/:name/offers',
  'POST /api/servers/:name/resource',
  'POST /api/servers/:name/prompt',
  'GET /api/servers-import',
  'POST /api/servers-import',
  'PUT /api/providers/:id/key',
  'DELETE /api/providers/:id/key'
]

// Checked: without `checkAdmin` on POST …/call, that request is not refused.
it('every route about servers and keys is for administrators, before anything is read, unless it is listed here', async () => {
  const server = Fastify()
  const routes: string[] = []
  server.addHook('onRoute', ({ method, url }) => void routes.push(...[method].flat().map((each) => `${each} ${url}`)))
  const reached: string[] = []
  const everything = <T extends object>(): T =>
    new Proxy({} as T, {
      get: (_, name) => async () => {
        reached.push(String(name))
        return {}
      }
    })
  const options = {
    servers: everything<Parameters<typeof registerServerRoutes>[1]['servers']>(),
    providers: everything<Parameters<typeof registerProviderRoutes>[1]['providers']>(),
    ownerOf: () => 'owner',
    addressOf: () => 'here',
    admin: {
      permissionsOf: () => 'token_needed' as const,
      isProven: () => false,
      check: () => {
        throw new AppError('forbidden', 'admin_required', 'no')
      }
    }
  }
  server.setErrorHandler((error, _request, reply) => reply.code(isAppError(error, 'admin_required') ? 403 : 500).send())
  registerServerRoutes(server, options)
  registerProviderRoutes(server, options)
  await server.ready()
  const known = [...FOR_MEMBERS, ...FOR_ADMINISTRATORS]
  expect(routes.filter((route) => !route.startsWith('HEAD ')).toSorted()).toEqual(known.toSorted())
  const ask = async (route: string) => {
    const [method = '', url = ''] = route.split(' ')
    const body = method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { payload: {} }
    return (await server.inject({ method: method as 'GET', url: url.replaceAll(/:\w+/g, 'x'), ...body })).statusCode
  }
  for (const route of routes.filter((each) => !FOR_MEMBERS.includes(each.replace('HEAD ', 'GET '))))
    expect([route, await ask(route)]).toEqual([route, 403])
  expect(reached).toEqual([])
  for (const route of FOR_MEMBERS) expect([route, await ask(route)]).toEqual([route, 200])
  await server.close()
})
