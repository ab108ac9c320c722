import { spawn } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { CoverWatch } from './cover-watch.ts'

const open: CoverWatch[] = []
afterEach(() => {
  for (const watch of open.splice(0)) watch.close()
})

function watched(file: string) {
  let changes = 0
  const watch = new CoverWatch(() => {
    changes++
  })
  open.push(watch)
  watch.add([file])
  return async (act: () => void) => {
    const before = changes
    act()
    await expect.poll(() => changes, { interval: 5 }).toBeGreaterThan(before)
  }
}

describe('the watch of our files', { timeout: 120_000 }, () => {
  it('notices a file that appears in a folder that is not there yet, and when both are replaced', async () => {
    const dir = temporaryFolder()
    const notices = watched(join(dir, 'run/engine/engine.sock'))
    const appear = () => {
      mkdirSync(join(dir, 'run/engine'), { recursive: true })
      writeFileSync(join(dir, 'run/engine/engine.sock'), '')
    }
    await notices(appear)
    await notices(() => rmSync(join(dir, 'run/engine/engine.sock')))
    await notices(() => writeFileSync(join(dir, 'run/engine/engine.sock'), ''))
    await notices(() => renameSync(join(dir, 'run'), join(dir, 'away')))
    await notices(appear)
  })

  // Checked: if only the slow look is left, a hundred replacements take almost two minutes.
  it.runIf(process.platform === 'linux')('is quick without inotify, which a server can use up', async () => {
    const file = join(temporaryFolder(), 'mcp.json')
    const script = `
      import { renameSync, watch, writeFileSync } from 'node:fs'
      import { CoverWatch } from '${import.meta.dirname}/cover-watch.ts'
      try { watch('/', () => {}); console.log('can watch') } catch (error) { console.log(error.code) }
      let changed = () => {}
      const cover = new CoverWatch(() => changed())
      const replace = () => { writeFileSync('${file}.draft', ''); renameSync('${file}.draft', '${file}') }
      replace()
      cover.add(['${file}'])
      const keep = setInterval(() => {}, 1000)
      for (let round = 0; round < 100; round++) {
        const { promise, resolve } = Promise.withResolvers()
        changed = resolve
        replace()
        await promise
      }
      cover.close()
      clearInterval(keep)
      console.log('noticed all')`
    const none = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
    const child = spawn('unshare', ['-Ur', 'sh', '-c', none, 'sh', ...node], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 60_000
    })
    expect(await text(child.stdout)).toBe('EMFILE\nnoticed all\n')
  })
})
