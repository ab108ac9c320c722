import { expect, it } from 'vitest'
import { servicesNearContainers } from './own-services.ts'

it('keeps servers in containers away from the store, the bucket and the engine', () => {
  const settings = { REDIS_URL: 'redis://localhost', S3_ENDPOINT: 'http://localhost:9000' }
  expect(servicesNearContainers(settings, 'tcp://[::1]:2375')).toEqual([
    { host: 'localhost', port: 6379 },
    { host: 'localhost', port: 9000 },
    { host: '::1', port: 2375 }
  ])
  expect(servicesNearContainers({ REDIS_URL: undefined, S3_ENDPOINT: undefined }, undefined)).toEqual([])
})
