import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { runProgram } from './fake-orchestrator.ts'

const ESCAPED = fileURLToPath(new URL('escaped-thread.fixture.ts', import.meta.url))

// Checked: if the thread gets the options of the process, it starts a worker that reads files.
it('denies code that has escaped from the realm files, processes and workers with other rights', async () => {
  const { end } = await runProgram('1', undefined, ESCAPED)
  if (end.type !== 'done') throw new Error(end.message)
  expect(JSON.parse(end.value)).toEqual({
    'read a file': 'ERR_ACCESS_DENIED',
    'read the environment of the process': 'ERR_ACCESS_DENIED',
    'write a file': 'ERR_ACCESS_DENIED',
    'open a database': 'ERR_UNKNOWN_BUILTIN_MODULE',
    'start a process': 'ERR_ACCESS_DENIED',
    'start a worker': 'ERR_ACCESS_DENIED',
    'start a worker without options': 'ERR_ACCESS_DENIED',
    'start a worker with other options': 'ERR_ACCESS_DENIED',
    'load a library': 'ERR_DLOPEN_DISABLED',
    'replace the process': 'ERR_WORKER_UNSUPPORTED_OPERATION',
    'open a debugger': 'ERR_ACCESS_DENIED',
    'write a heap snapshot': 'ERR_ACCESS_DENIED',
    'write a report': 'ERR_ACCESS_DENIED',
    'use a binding': 'ERR_ACCESS_DENIED',
    'compile a text': 'EvalError',
    'see the environment': 'nothing'
  })
})
