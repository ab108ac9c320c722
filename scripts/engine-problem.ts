/** Ends with 0 when the engine answers, else prints why not; the error's code comes first. For scripts/setup.sh. */
import Dockerode from 'dockerode'

try {
  await new Dockerode({ timeout: 5000 }).ping()
} catch (error) {
  const code = error instanceof Error && 'code' in error ? `${error.code}: ` : ''
  console.log(`${code}${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
