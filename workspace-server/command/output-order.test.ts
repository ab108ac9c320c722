import { expect, it } from 'vitest'
import { OutputOrder } from './output-order.ts'

const kept = (text: string) => ({ text, omittedBytes: 0 })

it('notes how the streams took turns, in characters, also where a chunk ends inside one', () => {
  const order = new OutputOrder()
  const [first, second] = [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)]
  order.add('stderr', Buffer.from('x'))
  order.add('stdout', first)
  order.add('stdout', second)
  order.add('stderr', Buffer.from('yz'))
  expect(order.of(kept('é'), kept('xyz'))).toEqual([0, 1, 1, 2])
})

it('says stdout, then stderr, if text was left out or the turns are too many', () => {
  const order = new OutputOrder()
  order.add('stderr', Buffer.from('x'))
  order.add('stdout', Buffer.from('abc'))
  expect(order.of(kept('[… 3 bytes left out …]'), kept('x'))).toEqual([22, 1])
  const busy = new OutputOrder()
  for (let turn = 0; turn < 2000; turn++) busy.add(turn % 2 ? 'stderr' : 'stdout', Buffer.from('x'))
  expect(busy.of(kept('x'.repeat(1000)), kept('x'.repeat(1000)))).toEqual([1000, 1000])
})
