import { readdirSync } from 'node:fs'
import Dockerode from 'dockerode'
import { afterEach, expect, test } from 'vitest'
import { silentLogger } from '../../server/lib/logger.ts'
import { createImageBuilder } from '../../server/sandbox/docker/image/image-builder.ts'
import { copyImage, type PrivateEngine, startPrivateEngine } from '../support/private-dockerd.ts'

let engine: PrivateEngine | undefined
afterEach(async () => {
  await engine?.dispose()
  engine = undefined
})

async function output(docker: Dockerode, runtime: string | undefined, script: string): Promise<string> {
  const image = await createImageBuilder(docker, { logger: silentLogger }).name()
  const container = await docker.createContainer({
    Image: image,
    Cmd: ['/bin/bash', '-c', script],
    Tty: true,
    HostConfig: { NetworkMode: 'none', ReadonlyRootfs: true, CapDrop: ['ALL'], ...(runtime && { Runtime: runtime }) }
  })
  await container.start()
  await container.wait()
  const text = (await container.logs({ stdout: true })).toString()
  await container.remove()
  return text
}

test('a private engine runs the sandbox image, survives stop, restart and kill, and leaves the main engine alone', async () => {
  const main = new Dockerode()
  const image = await createImageBuilder(main, { logger: silentLogger }).ensure()
  const before = { root: (await main.info()).DockerRootDir, interfaces: readdirSync('/sys/class/net') }
  engine = await startPrivateEngine()
  const { docker } = engine
  expect((await docker.info()).DockerRootDir).not.toBe(before.root)
  await copyImage(main, docker, image)
  expect(await output(docker, undefined, 'echo hello from $(id -u)')).toContain('hello from 10001')

  await engine.restart()
  await docker.getImage(image).inspect()
  await engine.stop()
  await expect(docker.ping()).rejects.toThrow()
  await engine.start()

  const idle = await docker.createContainer({
    Image: image,
    Cmd: ['/opt/mcp/idle', '900'],
    HostConfig: { NetworkMode: 'none', Tmpfs: { '/run/mcp': 'uid=10001,gid=10001' } }
  })
  await idle.start()
  await engine.kill()
  await expect(docker.ping()).rejects.toThrow()
  await engine.start()
  expect((await idle.inspect()).State.Running).toBe(false)
  expect((await main.info()).DockerRootDir).toBe(before.root)
  // Veths of other tests' containers come and go; the bridge must stay.
  expect(readdirSync('/sys/class/net')).toEqual(
    expect.arrayContaining(before.interfaces.filter((i) => !/^veth/.test(i)))
  )
})

test('gVisor runs the readable Node of the image, and refuses the execute-only one', async () => {
  const main = new Dockerode()
  const image = await createImageBuilder(main, { logger: silentLogger }).ensure()
  engine = await startPrivateEngine({ runsc: true })
  await copyImage(main, engine.docker, image)
  const text = await output(
    engine.docker,
    'runsc',
    'dmesg | head -1; /opt/mcp/bin/node -p "String(6*7)"; /opt/mcp/node -p "7*7"'
  )
  expect(text).toMatch(/gVisor/)
  expect(text).toMatch(/^42\r?$/m)
  expect(text).toMatch(/\/opt\/mcp\/node: Permission denied/)
})
