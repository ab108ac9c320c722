/** The real command-line client of Docker. Only a registry is missing. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { localImage } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { runImage } from './image.ts'

it('is asked for the digest in words that it understands', async () => {
  const tag = await localImage()
  const docker = async (args: string[]) =>
    args[0] === 'push' ? '' : (await promisify(execFile)('docker', args)).stdout
  await expect(runImage({ action: 'push', tag }, async () => tag, docker)).rejects.toMatchObject({
    message: `The registry gave no digest for ${tag}.`
  })
})
