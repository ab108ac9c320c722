/** Loaded before the product by `--import`: rewrites the places of the bugs or kill points in PLANTED_BUG (names with commas) as their files are read. */
import { registerHooks } from 'node:module'
import { KILL_POINTS, killingBug } from './kill-points.ts'
import { PLANTED_BUGS } from './planted-bugs.ts'

const bugs = (process.env.PLANTED_BUG ?? '').split(',').map((name) => {
  const point = Object.hasOwn(KILL_POINTS, name) ? KILL_POINTS[name] : undefined
  const bug = point ? killingBug(point) : Object.hasOwn(PLANTED_BUGS, name) ? PLANTED_BUGS[name] : undefined
  if (!bug) throw new Error(`There is no bug "${name}" to plant.`)
  return bug
})

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const bug = bugs.find(({ file }) => url.endsWith(file))
    if (!bug) return loaded
    const source = String(loaded.source)
    if (!source.includes(bug.replace)) throw new Error(`The place of a planted bug is not in ${bug.file} any more.`)
    return { ...loaded, source: source.replace(bug.replace, () => bug.by) }
  }
})
