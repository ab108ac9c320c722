/**
 * All tests: the unit tests over every core, then two lanes beside each other, those that share the engine and those that
 * don't. What the second lane says comes after the first, in one piece. What failed in any of them is said once more at the
 * very end, because that is the part of a long log that is kept and read.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
const reports = mkdtempSync(join(tmpdir(), 'test-lanes-'))
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal)
    process.exitCode = 130
  })
}

async function run(project: string, later?: Buffer[]): Promise<number> {
  if (process.exitCode) return 1
  const stdio = later ? 'pipe' : 'inherit'
  const report = ['--reporter=default', '--reporter=json', `--outputFile.json=${join(reports, project)}`]
  const child = spawn(process.execPath, [vitest, 'run', '--project', project, ...report], {
    stdio: ['ignore', stdio, stdio]
  })
  running.add(child)
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => later?.push(data))
  const [code] = await once(child, 'close')
  running.delete(child)
  return code ?? 1
}

interface Report {
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

function failuresOf(project: string): string {
  let report: Report
  try {
    report = JSON.parse(readFileSync(join(reports, project), 'utf8'))
  } catch {
    return 'ended without a report'
  }
  const failed = report.testResults.flatMap((file) => {
    const tests = file.assertionResults.filter((test) => test.status === 'failed')
    const path = relative(process.cwd(), file.name)
    if (tests.length === 0 && file.status === 'failed') return [`${path}\n${file.message}`]
    return tests.map((test) => `${path} > ${test.fullName}\n${test.failureMessages.join('\n').slice(0, 3000)}`)
  })
  return failed.join('\n\n') || 'an error outside of any test: see above'
}

const said: Buffer[] = []
const codes = [await run('unit'), ...(await Promise.all([run('engine'), run('apart', said)]))]
process.stdout.write(Buffer.concat(said))
for (const [lane, project] of ['unit', 'engine', 'apart'].entries()) {
  if (codes[lane] !== 0) process.stdout.write(`\n== failed: ${project}\n${failuresOf(project)}\n`)
}
rmSync(reports, { recursive: true, force: true })
process.exitCode ||= Math.max(...codes)
