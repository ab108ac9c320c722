import { createGatewayApp, type GatewayApp } from '../app/app-gateway.ts'
import { dotenvWithSecrets } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { createLogger } from '../lib/logger.ts'

/** The gateway for commands, which print errors themselves. A missing registry is an empty one. */
export function openQuietGateway(settings: Settings): Promise<GatewayApp> {
  const options = { environment: process.env, optionalRegistry: true, dotenv: dotenvWithSecrets(), readsDotenv: true }
  return createGatewayApp(settings, createLogger('silent'), options)
}
