/**
 * Builds the sandbox image like the orchestrator on first use, and prints progress. For scripts/setup.sh, which handles exit code 3:
 * neither a registry nor mmdebstrap is available.
 */
import Dockerode from 'dockerode'
import { uidRange } from '../server/config/parse-value.ts'
import { isAppError, messageOf } from '../server/lib/errors.ts'
import { silentLogger } from '../server/lib/logger.ts'
import { createImageBuilder } from '../server/sandbox/docker/image/image-builder.ts'

const builder = createImageBuilder(new Dockerode(), {
  image: process.env.SANDBOX_IMAGE || undefined,
  uids: process.env.SANDBOX_UIDS ? uidRange(process.env.SANDBOX_UIDS, 'SANDBOX_UIDS') : undefined,
  logger: silentLogger
})
try {
  const name = await builder.ensure((line) => console.log(`  ${line}`))
  console.log(`The sandbox image is there: ${name}`)
} catch (error) {
  const curable = error instanceof Error && isAppError(error.cause, 'mmdebstrap_missing')
  if (!curable) console.error(messageOf(error))
  process.exitCode = curable ? 3 : 1
}
