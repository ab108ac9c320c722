import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { AppError } from '../lib/errors.ts'
import { OpenSockets } from './open-sockets.ts'
import { PendingConnections } from './pending-connections.ts'

function connection() {
  const events = new EventEmitter()
  const state = {
    isOpen: true,
    once: (event: string, listener: () => void) => events.once(event, listener),
    close() {
      state.isOpen = false
      events.emit('close')
    }
  }
  return state
}

it('keeps the newest of each address, and those on which someone has come in', () => {
  const pending = new PendingConnections(3)
  const [one, admitted, ...rest] = Array.from({ length: 6 }, connection)
  const other = connection()
  pending.add('b', other)
  for (const each of [one, admitted]) pending.add('a', each!)
  pending.remove(admitted!)
  for (const each of rest) pending.add('a', each)
  expect([one, admitted, ...rest, other].map((each) => each?.isOpen)).toEqual([
    false,
    true,
    false,
    true,
    true,
    true,
    true
  ])
})

it('is bounded over all addresses', () => {
  const pending = new PendingConnections(3)
  const all = Array.from({ length: 2500 }, connection)
  for (const [at, each] of all.entries()) pending.add(`address ${at}`, each)
  expect(all.filter(({ isOpen }) => isOpen)).toHaveLength(2000)
})

it('closes a connection on which attempts fail again and again', () => {
  const pending = new PendingConnections(3)
  const one = connection()
  pending.add('a', one)
  for (let at = 0; at < 4; at++) pending.failed(one)
  expect(one.isOpen).toBe(true)
  pending.failed(one)
  expect(one.isOpen).toBe(false)
})

it('refuses one person too many sockets, and takes more when some are closed', () => {
  const open = new OpenSockets(2)
  const [leave] = [open.enter('me'), open.enter('me')]
  expect(() => open.enter('me')).toThrow(AppError)
  open.enter('you')
  leave?.()
  leave?.()
  open.enter('me')
  expect(() => open.enter('me')).toThrow(/2 connections/)
})
