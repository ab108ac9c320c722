import type { FastifyInstance } from 'fastify'
import type { Models } from '../../models/port.ts'

export function registerModelRoutes(server: FastifyInstance, models: Pick<Models, 'catalog'>): void {
  server.get('/api/models', () => models.catalog())
  server.post('/api/models/refresh', () => models.catalog({ refresh: true }))
}
