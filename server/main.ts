import { auditCommand } from './cli/audit.ts'
import { backupCommand } from './cli/backup.ts'
import { doctorCommand } from './cli/doctor/doctor.ts'
import { embeddingsCommand } from './cli/embeddings.ts'
import { engineProxyCommand } from './cli/engine-proxy.ts'
import { gatewayCommand } from './cli/gateway.ts'
import { imageCommand } from './cli/image/image.ts'
import { migrateCommand } from './cli/migrate.ts'
import { restoreCommand } from './cli/restore.ts'
import { runCli } from './cli/run-cli.ts'
import { serveCommand } from './cli/serve.ts'
import { serversCommand } from './cli/servers/servers.ts'

process.exitCode = await runCli(process.argv.slice(2), [
  serveCommand,
  gatewayCommand,
  serversCommand,
  auditCommand,
  embeddingsCommand,
  imageCommand,
  backupCommand,
  restoreCommand,
  migrateCommand,
  doctorCommand,
  engineProxyCommand
])
