import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startListeningPackage } from '../../../tests/support/listening-package.ts'
import { isOwnPort, type OwnService } from './own-ports.ts'

const ask = (address: string, port: number, services: OwnService[] = []) =>
  isOwnPort({ address, port }, services, async (host) => [host === 'store' ? '127.0.0.1' : '93.184.216.34'])

// Checked: if only the list counts, the answer is false for each of them.
it.runIf(process.platform === 'linux')(
  'ports of this process and of other instances are its own, on every address',
  async () => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const address of ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::ffff:127.0.0.1'])
      expect(await ask(address, port)).toBe(true)
    expect(await ask('93.184.216.34', port)).toBe(false)
    expect(await ask('::1', await startListeningPackage('mcp-orchestrator', '::1'))).toBe(true)
    expect(await ask('127.0.0.1', await startListeningPackage('another-program', '127.0.0.1'))).toBe(false)
  }
)

it('the store and the engine are its own, wherever they are', async () => {
  const services = [
    { host: 'store', port: 1 },
    { host: 'elsewhere', port: 2 }
  ]
  expect(await ask('127.0.0.2', 1, services)).toBe(true)
  expect(await ask('93.184.216.34', 2, services)).toBe(true)
  expect(await ask('93.184.216.34', 1, services)).toBe(false)
  expect(await ask('127.0.0.1', 2, services)).toBe(false)
})
