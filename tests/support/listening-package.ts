import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { temporaryFolder } from './temporary-folder.ts'

const MAIN = `import { createServer } from 'node:http'
const server = createServer((_request, response) => response.end('reached'))
server.listen(0, process.argv[2], () => console.log(server.address().port))`

/** Starts a program that looks like the main program of a package with this name. Resolves to its port; it ends with the test. */
export async function startListeningPackage(name: string, address: string): Promise<number> {
  const dir = temporaryFolder()
  mkdirSync(join(dir, 'dist'))
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ name }))
  writeFileSync(join(dir, 'dist/main.mjs'), MAIN)
  const child = spawn(process.execPath, ['dist/main.mjs', address], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = await once(child.stdout, 'data')
  return Number(port)
}
