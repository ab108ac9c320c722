import { readFileSync } from 'node:fs'

const MAX_PROCESSES = 64
/** CPU time between two looks that counts as work; an idle runtime uses less. */
const WORK_TICKS = 5

/** Tells whether a child that has not answered yet does something: it has written to its log or used the CPU since the last look. */
export function watchProgress(written: () => number, pid: number): () => boolean {
  let last = { written: written(), ticks: cpuTicks(pid) }
  return () => {
    const now = { written: written(), ticks: cpuTicks(pid) }
    const isWorking = now.written > last.written || now.ticks - last.ticks >= WORK_TICKS
    last = now
    return isWorking
  }
}

/** CPU time of the process and its descendants, those that have ended included. Zero if the system does not tell. */
function cpuTicks(pid: number): number {
  let ticks = 0
  const open = pid > 0 ? [pid] : []
  for (let seen = 0; seen < MAX_PROCESSES; seen++) {
    const next = open.pop()
    if (next === undefined) break
    const [stat = '', children = ''] = ['stat', `task/${next}/children`].map((name) => textOf(`/proc/${next}/${name}`))
    // After the name: user and system time, and those of its ended children.
    const times = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
    ticks += times.reduce((sum, time) => sum + (Number(time) || 0), 0)
    open.push(
      ...children
        .split(' ')
        .map(Number)
        .filter((child) => child > 0)
    )
  }
  return ticks
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
