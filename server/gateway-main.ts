/** Entry point of the commands that must start fast: a client waits for the gateway whenever it starts. */
import { auditCommand } from './cli/audit.ts'
import { gatewayCommand } from './cli/gateway.ts'
import { runCli } from './cli/run-cli.ts'
import { serversCommand } from './cli/servers/servers.ts'

process.exitCode = await runCli(process.argv.slice(2), [gatewayCommand, serversCommand, auditCommand])
