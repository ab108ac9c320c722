import { setTimeout as sleep } from 'node:timers/promises'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../../lib/logger.ts'
import { type ImageAssets, readImageAssets } from './image-assets.ts'
import { createImageBuilder } from './image-builder.ts'

const docker = new Dockerode()
const builder = createImageBuilder(docker, { logger: silentLogger })
const made: string[] = []
const containers: Dockerode.Container[] = []
let image: string

beforeAll(async () => {
  image = await builder.ensure()
})

afterAll(async () => {
  await Promise.all(containers.map((container) => container.remove({ force: true })))
  for (const name of made.reverse())
    await docker
      .getImage(name)
      .remove({ force: true })
      .catch(() => {})
})

/** As a sandbox runs it: no root, no capability, no network, nothing writable but a tmpfs. */
async function start(name: string, cmd: string[]): Promise<Dockerode.Container> {
  const container = await docker.createContainer({
    Image: name,
    Cmd: cmd,
    Tty: true,
    HostConfig: {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      NetworkMode: 'none',
      SecurityOpt: ['no-new-privileges'],
      Init: true,
      PidsLimit: 40,
      Tmpfs: { '/run/mcp': 'uid=10001,gid=10001', '/workspace': 'exec,uid=10001,gid=10001' }
    }
  })
  containers.push(container)
  await container.start()
  return container
}

async function run(name: string, script: string): Promise<string> {
  const container = await start(name, ['/bin/bash', '-c', script])
  await container.wait()
  return (await container.logs({ stdout: true, stderr: true })).toString().replaceAll('\r', '')
}

function altered(change: (assets: ImageAssets) => ImageAssets) {
  return { logger: silentLogger, assets: async () => change(await readImageAssets()) }
}

/** An image like the given one under another name, changed as a Dockerfile would. */
async function variant(from: string, tag: string, changes: string[]): Promise<string> {
  const container = await docker.createContainer({ Image: from })
  const name = `mcp-orchestrator-test:${tag}`
  await container.commit({ repo: 'mcp-orchestrator-test', tag, changes: changes.join('\n') })
  await container.remove()
  made.push(name)
  return name
}

describe('our own image', () => {
  test('has the tools that a person expects, for the user of the sandbox', async () => {
    const output = await run(
      image,
      `id; pwd; export GIT_PAGER=cat; bash --version | head -1; git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --format=%s
       echo 'import json; print(json.dumps({"python": 3}))' | python3
       echo 'console.log("node", process.version)' | node
       echo '{"a": "jq works"}' | jq -r .a; echo needle > f; rg -c needle f; tar cf t.tar f && tar tf t.tar
       python3 -m zipfile -c z.zip f && unzip -l z.zip | tail -1; xz --version | head -1; ps --version; cp f g && sort g | wc -l`
    )
    expect(output).toMatch(/uid=10001\(sandbox\) gid=10001\(sandbox\)/)
    for (const expected of [
      /^\/workspace$/m,
      /GNU bash/,
      /^x$/m,
      /\{"python": 3\}/,
      /^node v24\./m,
      /^jq works$/m,
      /^1$/m,
      /^f$/m,
      /1 file/,
      /XZ Utils/,
      /procps/
    ]) {
      expect(output).toMatch(expected)
    }
    expect(output).not.toMatch(/not found|rror/)
  })

  test('keeps the server and its Node out of reach', async () => {
    const output = await run(
      image,
      `stat -c '%a %U:%G %n' /opt/mcp/node /opt/mcp/bash /opt/mcp/bin/node /opt/mcp/server.mjs /opt/mcp/idle /opt/mcp
       cat /opt/mcp/node >/dev/null && echo READ; /opt/mcp/node -p '"runs " + process.version'
       find / -xdev -perm /6000 -type f 2>/dev/null; find / -xdev -writable -not -type l -not -path '/dev/*' 2>/dev/null`
    )
    expect(output.trim().split('\n')).toEqual([
      '711 root:root /opt/mcp/node',
      '711 root:root /opt/mcp/bash',
      '755 root:root /opt/mcp/bin/node',
      '644 root:root /opt/mcp/server.mjs',
      '755 root:root /opt/mcp/idle',
      '755 root:root /opt/mcp',
      'cat: /opt/mcp/node: Permission denied',
      expect.stringMatching(/^runs v24\./),
      // Mount points of the sandbox's own.
      '/workspace',
      '/run/mcp'
    ])
  })

  test('is found again at once, and concurrent calls share one build', async () => {
    expect(await builder.exists()).toBe(true)
    const changed = createImageBuilder(
      docker,
      altered((assets) => ({ ...assets, server: Buffer.concat([assets.server, Buffer.from(`//${Math.random()}`)]) }))
    )
    // The random number above is drawn on every reading: only a shared build gives one name.
    const names = await Promise.all(Array.from({ length: 5 }, () => changed.ensure()))
    made.push(...names)
    expect(new Set(names).size).toBe(1)
    expect(names[0]).not.toBe(image)
    await docker.getImage(names[0]!).inspect()
  })
})

// They mostly wait, each for its own container.
describe.concurrent('idle', () => {
  /** Waits for its end; the time is the engine's, so that it does not matter when we look. */
  async function ended(container: Dockerode.Container): Promise<{ exitCode: number; livedMs: number }> {
    await container.wait()
    const { ExitCode, StartedAt, FinishedAt } = (await container.inspect()).State
    return { exitCode: ExitCode, livedMs: Date.parse(FinishedAt) - Date.parse(StartedAt) }
  }

  async function exec(container: Dockerode.Container, ...Cmd: string[]): Promise<void> {
    const exec = await container.exec({ Cmd, AttachStdout: true })
    const stream = await exec.start({})
    for await (const _ of stream);
  }

  test('ends by itself when nobody gives a sign of life', async () => {
    const container = await start(image, ['/opt/mcp/idle', '2'])
    const { exitCode, livedMs } = await ended(container)
    expect(exitCode).toBe(0)
    expect(livedMs).toBeGreaterThan(1500)
  })

  test('stays as long as it gets one, and ends after the last', async () => {
    const container = await start(image, ['/opt/mcp/idle', '6'])
    const since = performance.now()
    for (; performance.now() - since < 9000; await sleep(500)) await exec(container, 'touch', '/run/mcp/alive')
    expect((await container.inspect()).State.Running).toBe(true)
    expect((await ended(container)).exitCode).toBe(0)
  })

  test('does not count a pause', async () => {
    const container = await start(image, ['/opt/mcp/idle', '4'])
    await container.pause()
    await sleep(8000)
    await container.unpause()
    const { exitCode, livedMs } = await ended(container)
    expect(exitCode).toBe(0)
    expect(livedMs - 8000).toBeGreaterThan(3000)
  })

  test('obeys TERM at once', async () => {
    const container = await start(image, ['/opt/mcp/idle', '900'])
    // It traps the signal before it writes this file.
    await exec(container, '/bin/bash', '-c', 'until [ -e /run/mcp/idle-seen ]; do :; done')
    // 137 of one that had to be killed.
    await container.stop({ t: 30 })
    expect((await ended(container)).exitCode).toBe(0)
  })

  test('survives a command that uses up all processes', async () => {
    const container = await start(image, ['/opt/mcp/idle', '4'])
    const bomb = await container.exec({ Cmd: ['/bin/bash', '-c', 'bomb() { bomb | bomb & }; bomb; sleep 60'] })
    await bomb.start({ Detach: true })
    // Looks of idle happen under the bomb; without a sign of life it must still end by itself, and in order.
    const { exitCode, livedMs } = await ended(container)
    expect(exitCode).toBe(0)
    // The idle process counts whole seconds, and the engine notes the start late on a busy machine.
    expect(livedMs).toBeGreaterThan(2000)
  })
})

describe("the user's own image", () => {
  test('becomes a sandbox, keeping its own node and settings', async () => {
    const own = await variant(image, 'own', ['ENV MINE=yes', 'ENTRYPOINT ["/bin/false"]', 'USER root'])
    const ownBuilder = createImageBuilder(docker, { image: own, logger: silentLogger })
    expect(await ownBuilder.exists()).toBe(false)
    const lines: string[] = []
    const name = await ownBuilder.ensure((line) => lines.push(line))
    made.push(name)
    expect(name).toBe(await ownBuilder.name())
    expect(name).not.toBe(image)
    expect(lines.join('\n')).toContain('workspace server')
    expect(await run(name, 'echo $MINE $(id -u); node -p 1+1; /opt/mcp/node -p 1+2')).toMatch(/^yes 10001\n.*2.*\n.*3/)
  })

  test('that the engine lacks and no registry has is a clear error', async () => {
    const missing = createImageBuilder(docker, { image: 'localhost:1/no/such:image', logger: silentLogger })
    expect(await missing.exists()).toBe(false)
    await expect(missing.ensure()).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'sandbox_image_missing',
      message: expect.stringMatching(/the image localhost:1\/no\/such:image.*docker pull/)
    })
  })

  test('without what the server needs is refused with the reason, and leaves no image', async () => {
    const container = await docker.createContainer({ Image: image, User: 'root', Cmd: ['rm', '-f', '/bin/bash'] })
    await container.start()
    await container.wait()
    await container.commit({ repo: 'mcp-orchestrator-test', tag: 'no-bash' })
    made.push('mcp-orchestrator-test:no-bash')
    await container.remove()
    const unusable = createImageBuilder(docker, { image: 'mcp-orchestrator-test:no-bash', logger: silentLogger })
    await expect(unusable.ensure()).rejects.toMatchObject({
      code: 'sandbox_image_unusable',
      message: expect.stringMatching(/can't be a sandbox.*\/bin\/bash/)
    })
    expect(await unusable.exists()).toBe(false)
  })

  test('with volumes is refused: no limit would bound them', async () => {
    const own = await variant(image, 'volumes', ['VOLUME /data'])
    const ownBuilder = createImageBuilder(docker, { image: own, logger: silentLogger })
    await expect(ownBuilder.ensure()).rejects.toMatchObject({
      code: 'sandbox_image_unusable',
      message: expect.stringContaining('/data')
    })
  })
})

test("without a Linux binary of its own, the image's Node comes from a public image", async () => {
  const publicImage = await variant(image, 'node', ['USER root'])
  const remote = createImageBuilder(
    docker,
    altered((assets) => ({ ...assets, node: { version: assets.node.version, file: null, publicImage } }))
  )
  const name = await remote.ensure()
  made.push(name)
  expect(name).not.toBe(image)
  const output = await run(name, `stat -c %a /opt/mcp/node /opt/mcp/bin/node; /opt/mcp/node -p '"ok" + 1'`)
  expect(output).toBe('711\n755\nok1\n')
})
