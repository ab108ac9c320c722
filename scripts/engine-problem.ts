/** For scripts/setup.sh: exits with 0 if the engine answers, otherwise prints the error code and the reason. */
import Dockerode from 'dockerode'

try {
  await new Dockerode({ timeout: 5000 }).ping()
} catch (error) {
  const code = error instanceof Error && 'code' in error ? `${error.code}: ` : ''
  console.log(`${code}${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}
