/**
 * Stores which owner is current, where a restarted server finds it: one empty folder per epoch seen, and the highest is the
 * current one. mkdir is atomic and overwrites nothing, so concurrent writers can only raise the epoch, never lower it.
 */
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'

const EPOCH_NAME = /^\d{1,16}$/

export class EpochFence {
  readonly #folder: string
  #mine = -1

  constructor(stateFolder: string) {
    this.#folder = join(stateFolder, 'epochs')
    mkdirSync(this.#folder, { recursive: true })
  }

  /** The highest epoch seen, or -1. */
  current(): number {
    return this.#seen().reduce((highest, epoch) => Math.max(highest, epoch), -1)
  }

  /** Whether no later owner has been here. */
  isMine(): boolean {
    return this.current() <= this.#mine
  }

  /** Returns false if a higher epoch has been seen, before or during the attempt. */
  raise(epoch: number): boolean {
    if (this.current() > epoch) return false
    mkdirSync(join(this.#folder, String(epoch)), { recursive: true })
    if (this.current() > epoch) return false
    this.#mine = epoch
    this.#forgetBelow(epoch)
    return true
  }

  #seen(): number[] {
    return readdirSync(this.#folder)
      .filter((name) => EPOCH_NAME.test(name))
      .map(Number)
  }

  #forgetBelow(epoch: number): void {
    for (const old of this.#seen()) {
      if (old >= epoch) continue
      try {
        rmdirSync(join(this.#folder, String(old)))
      } catch {
        // Another server removed it first; the highest stays either way.
      }
    }
  }
}
