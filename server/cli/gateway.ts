import { createGatewayApp, type GatewayApp } from '../app/app-gateway.ts'
import { userDefaults } from '../config/user-folders.ts'
import { refuseNesting } from '../connections/local/gateway-depth.ts'
import { openStdioDoor } from '../gateway/doors/stdio-door.ts'
import { createLogger } from '../lib/logger.ts'
import type { Command } from './command.ts'
import { leaveSoon } from './leave-soon.ts'

export const gatewayCommand: Command = {
  name: 'gateway',
  summary: 'start the gateway: one MCP server over stdio for all servers in mcp.json',
  mainSettings: [
    'MCP_CONFIG',
    'DATA_DIR',
    'CREDENTIALS_FILE',
    'GATEWAY_EXPOSE',
    'GATEWAY_CODE',
    'REDIS_URL',
    'APPROVAL_WAIT_SECONDS',
    'CHANGED_TOOLS',
    'AUDIT_ARGUMENTS',
    'METRICS_FILE',
    'LOG_LEVEL'
  ],
  defaults: userDefaults,
  ignoresDotenv: true,
  flags: { code: { type: 'boolean', help: 'also offer run_code, which runs a program in a sandbox (experimental)' } },
  async run(given, { flags }) {
    const settings = flags.code === true ? { ...given, GATEWAY_CODE: 'true' as const } : given
    refuseNesting(process.env, settings.MCP_CONFIG)
    const logger = createLogger(settings.LOG_LEVEL)
    const optionalRegistry = settings.MCP_CONFIG === userDefaults(process.env).MCP_CONFIG
    const app = await createGatewayApp(settings, logger, { environment: process.env, optionalRegistry })
    const exposed = app.exposed && (await openExposed(app.exposed))
    const door = openStdioDoor(app.gateway, app.version, logger, exposed)
    app.watch()
    const signalled = new Promise<void>((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
    })
    await Promise.race([door.closed, signalled])
    await door.close()
    await app.stop()
    leaveSoon()
    return 0
  }
}

/** Loaded on demand, so that the gateway starts fast without `--expose`. */
async function openExposed(exposed: NonNullable<GatewayApp['exposed']>) {
  const { ExposedStdio } = await import('../gateway/expose/exposed-stdio.ts')
  return new ExposedStdio(exposed)
}
