import { expect, it } from 'vitest'
import { addServers } from './edit-registry.ts'

it('says of a file that can not be written what to look at', async () => {
  // Not even root makes files there.
  const adding = addServers('/proc/mcp.json', { x: { command: 'true' } })
  await expect(adding).rejects.toMatchObject({ code: 'file_unwritable', kind: 'unavailable' })
  await expect(adding).rejects.toThrow(/^\/proc\/mcp\.json can't be changed \(.*\): check its permissions/)
})
