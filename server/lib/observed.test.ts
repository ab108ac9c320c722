import { expect, it } from 'vitest'
import { type Operation, observed } from './observed.ts'

class Port {
  #count = 0
  readonly name = 'port'
  async add(by: number): Promise<number> {
    this.#count += by
    return this.#count
  }
  async fail(): Promise<never> {
    throw new Error('no')
  }
  get total(): number {
    return this.#count
  }
  peek(): number {
    return this.#count
  }
}

it('reports every asynchronous operation, changes no answer and no error, and passes the rest through', async () => {
  const seen: Operation[] = []
  const port = observed(new Port(), (operation) => seen.push(operation))
  expect(await port.add(2)).toBe(2)
  await expect(port.fail()).rejects.toThrow('no')
  expect([port.total, port.peek(), port.name]).toEqual([2, 2, 'port'])
  expect(seen.map(({ name, error }) => [name, error instanceof Error])).toEqual([
    ['add', false],
    ['fail', true]
  ])
  expect(seen.every(({ ms }) => ms >= 0)).toBe(true)
})
