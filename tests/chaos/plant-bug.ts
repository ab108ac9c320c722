/** Loaded before the product by `--import`: rewrites one place of one file as it is read, so that a bug is really in it. */
import { registerHooks } from 'node:module'
import { PLANTED_BUGS } from './planted-bugs.ts'

const name = process.env.PLANTED_BUG ?? ''
const bug = Object.hasOwn(PLANTED_BUGS, name) ? PLANTED_BUGS[name] : undefined
if (!bug) throw new Error(`There is no bug "${name}" to plant.`)

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (!url.endsWith(bug.file)) return loaded
    const source = String(loaded.source)
    if (!source.includes(bug.replace)) throw new Error(`The bug "${name}" has no place in ${bug.file} any more.`)
    return { ...loaded, source: source.replace(bug.replace, () => bug.by) }
  }
})
