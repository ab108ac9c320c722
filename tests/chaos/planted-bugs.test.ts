import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { KILL_POINTS } from './kill-points.ts'
import { PLANTED_BUGS } from './planted-bugs.ts'

it.each(Object.entries({ ...PLANTED_BUGS, ...KILL_POINTS }))(
  '%s has its place in the source, once',
  (_name, { file, replace }) => {
    const source = readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
    expect(source.split(replace)).toHaveLength(2)
  }
)
