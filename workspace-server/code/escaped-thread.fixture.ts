/**
 * A realm that has failed: in its thread runs code that has escaped. It tries to get out of the thread, and returns each way with what it
 * got or with the code of its error.
 */
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { runCodeRealm } from './run-realm.ts'

const READ = `const tried = [() => require('fs').readdirSync('/'), () => require('child_process').execSync('id')]
require('worker_threads').parentPort.postMessage(tried.map((way) => { try { return String(way()) } catch (error) { return error.code } }).join())`

const inWorker = (execArgv?: string[]) => () =>
  new Promise((resolve, reject) => {
    const worker = new Worker(READ, { eval: true, ...(execArgv ? { execArgv } : {}) })
    worker.on('message', resolve).on('error', reject)
  })

const WAYS: Record<string, () => unknown> = {
  'read a file': async () => (await import('node:fs')).readFileSync('/etc/passwd', 'utf8'),
  'read the environment of the process': async () =>
    (await import('node:fs')).readFileSync('/proc/self/environ', 'utf8'),
  'write a file': async () => (await import('node:fs')).writeFileSync('/tmp/escaped', 'x'),
  'open a database': async () => Reflect.construct((await import('node:sqlite')).DatabaseSync, ['/tmp/escaped.db']),
  'start a process': async () => (await import('node:child_process')).execSync('id'),
  'start a worker': inWorker(),
  'start a worker without options': inWorker([]),
  'start a worker with other options': inWorker(['--no-warnings']),
  'load a library': () => process.dlopen({ exports: {} }, '/usr/lib/libc.so.6'),
  'replace the process': () => process.execve?.('/bin/sh', ['sh']),
  'open a debugger': async () => (await import('node:inspector')).open(0),
  'write a heap snapshot': async () => (await import('node:v8')).writeHeapSnapshot('/tmp/escaped.heap'),
  'write a report': () => process.report.writeReport('/tmp/escaped.json'),
  'use a binding': () => (process as unknown as { binding(name: string): unknown }).binding('fs'),
  'compile a text': () => Reflect.construct(Function, ['return 1'])(),
  'see the environment': () => {
    const { SECRET } = process.env
    if (SECRET === undefined) throw Object.assign(new Error(), { code: 'nothing' })
  }
}

async function attack(): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [name, way] of Object.entries(WAYS)) {
    try {
      found[name] = `worked: ${String(await way()).slice(0, 100)}`
    } catch (error) {
      found[name] = String((error as { code?: unknown }).code ?? (error as Error).name)
    }
  }
  return found
}

if (isMainThread) runCodeRealm()
else {
  const post = (type: string, text: string) =>
    parentPort?.postMessage({ type, n: 0, kind: '', server: '', tool: '', text, line: 0 })
  parentPort?.on('message', async ({ type }) => {
    if (type === 'run') post('done', JSON.stringify(await attack()))
  })
  post('ready', '')
}
