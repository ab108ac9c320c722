import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { engineMessage, runEngineJob } from './image-progress.ts'

const job = { what: 'the test', quietMs: 2000, totalMs: 4000 }
const ID = `sha256:${'a'.repeat(64)}`

function events(...all: object[]): Readable {
  return Readable.from(all.map((event) => Buffer.from(`${JSON.stringify(event)}\r\n`)))
}

test('follows a build: its lines without the noise, and the id of the image', async () => {
  const lines: string[] = []
  const id = await runEngineJob({ ...job, onLine: (line) => lines.push(line) }, async () =>
    events(
      { stream: 'Step 1/1 : FROM x\n' },
      { stream: ' ---> 123\n' },
      { aux: { ID } },
      { stream: 'Successfully built' }
    )
  )
  expect(id).toBe(ID)
  expect(lines).toEqual(['Step 1/1 : FROM x', 'Successfully built'])
})

test('finds events that are cut anywhere, inside a character too', async () => {
  const bytes = Buffer.from(`${JSON.stringify({ stream: 'bäse €' })}\n${JSON.stringify({ status: ID })}`)
  for (let cut = 1; cut < bytes.length; cut++) {
    const lines: string[] = []
    const start = async () => Readable.from([bytes.subarray(0, cut), bytes.subarray(cut)])
    expect(await runEngineJob({ ...job, onLine: (line) => lines.push(line) }, start)).toBe(ID)
    expect(lines).toEqual(['bäse €'])
  }
})

test('a failure that comes as an event under status 200 is a failure', async () => {
  const start = async () => events({ stream: 'Step 1' }, { errorDetail: { message: 'no such host' }, error: 'x' })
  await expect(runEngineJob(job, start)).rejects.toThrow('no such host')
})

test('a stream that breaks is no success', async () => {
  async function* broken() {
    yield Buffer.from(`${JSON.stringify({ stream: 'a' })}\n`)
    throw new Error('socket hang up')
  }
  await expect(runEngineJob(job, async () => Readable.from(broken()))).rejects.toThrow('socket hang up')
})

test('an upload that fails ends the job', async () => {
  const body = new Readable({ read() {} })
  const running = runEngineJob({ ...job, body }, () => new Promise(() => {}))
  body.destroy(new Error('node changed while it was being read'))
  await expect(running).rejects.toThrow('changed')
})

test('a silent engine is given up, and told so; one that keeps talking is not', async () => {
  let aborted = false
  const silent = runEngineJob({ ...job, quietMs: 50 }, (signal) => {
    signal.addEventListener('abort', () => {
      aborted = true
    })
    return new Promise(() => {})
  })
  await expect(silent).rejects.toMatchObject({ kind: 'timeout', code: 'engine_silent' })
  expect(aborted).toBe(true)

  const talking = new Readable({ read() {} })
  let left = 10
  const timer = setInterval(() => {
    talking.push(left-- > 0 ? `${JSON.stringify({ status: 'Downloading', progressDetail: { total: 9 } })}\n` : null)
  }, 40)
  await runEngineJob({ ...job, quietMs: 300 }, async () => talking)
  clearInterval(timer)
})

test('the message of the engine comes without the wrapping of its client', () => {
  expect(engineMessage(new Error('(HTTP code 500) server error - Get "https://x-y": no such host '))).toBe(
    'Get "https://x-y": no such host'
  )
})
