/** The HTTP face: REST, static files, health. Parses, calls down and translates errors; holds no state of its own. */
import Fastify, { type FastifyInstance } from 'fastify'
import { AppError } from '../lib/errors.ts'
import { type HealthCheck, registerHealth } from './health.ts'

export interface HttpServer {
  /** Resolves to the address that it listens on. */
  listen(at: { port: number; host: string }): Promise<string>
  close(): Promise<void>
}

export function createHttpServer(options: { healthChecks: Record<string, HealthCheck> }): HttpServer {
  const server = Fastify({ forceCloseConnections: true })
  registerHealth(server, options.healthChecks)
  return { listen: (at) => listen(server, at), close: () => server.close() }
}

async function listen(server: FastifyInstance, at: { port: number; host: string }): Promise<string> {
  try {
    return await server.listen(at)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
      const message = `Port ${at.port} is in use: stop what uses it, or set PORT to another one.`
      throw new AppError('conflict', 'port_in_use', message, { cause: error })
    }
    throw error
  }
}
