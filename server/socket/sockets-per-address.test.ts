import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { SocketsPerAddress } from './sockets-per-address.ts'

it('refuses one address too many sockets, and takes more when some are closed', () => {
  const addresses = new SocketsPerAddress()
  const sockets = Array.from({ length: 200 }, () => ({ conn: new EventEmitter() }))
  for (const socket of sockets) addresses.enter('1.1.1.1', socket)
  const next = { conn: new EventEmitter() }
  expect(() => addresses.enter('1.1.1.1', next)).toThrow(/200 connections/)
  addresses.enter('2.2.2.2', next)
  sockets[0]?.conn.emit('close')
  addresses.enter('1.1.1.1', { conn: new EventEmitter() })
  expect(() => addresses.enter('1.1.1.1', next)).toThrow(/200 connections/)
})
