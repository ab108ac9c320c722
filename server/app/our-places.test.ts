import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { loadSettings } from '../config/load-settings.ts'
import { packageRoot } from '../lib/files/package-root.ts'
import { ourPlaces, programsOf } from './our-places.ts'

/** The package as npm installs it, without Node. */
function install() {
  const dir = temporaryFolder()
  const beside = join(dir, 'project/node_modules')
  const root = join(beside, 'mcp-orchestrator')
  for (const folder of ['dist', '../.bin']) mkdirSync(join(root, folder), { recursive: true })
  cpSync(join(packageRoot(), 'bin'), join(root, 'bin'), { recursive: true })
  writeFileSync(join(root, 'dist/main.mjs'), 'console.log("ours")')
  symlinkSync('../mcp-orchestrator/bin/mcp-orchestrator', join(beside, '.bin/mcp-orchestrator'))
  return { dir, beside, root }
}

function plant(modules: string): void {
  const node = join(modules, 'node/bin/node')
  mkdirSync(dirname(node), { recursive: true })
  writeFileSync(node, '#!/bin/sh\necho planted', { mode: 0o755 })
}

// Checked: if only bin, dist and images are listed, a server can put a Node where the start script looks first.
it('programs include every place where the start script looks for Node, also one that is not there yet', () => {
  const { beside, root } = install()
  const listed = [root, join(beside, 'node'), join(beside, '.bin'), '/usr/bin/node']
  expect(programsOf(root, '/usr/bin/node')).toEqual(listed)
  expect(existsSync(join(beside, 'node'))).toBe(true)
  // In a folder that the program was started in, servers may use what is not listed.
  for (const folder of ['scripts', 'server', 'notes']) mkdirSync(join(root, folder))
  const parts = ['bin', 'dist', 'scripts', 'server', 'npm-shrinkwrap.json', '.npmrc', 'node_modules'].map((name) =>
    join(root, name)
  )
  expect(programsOf(root, '/usr/bin/node', root)).toEqual([...parts, ...listed.slice(1)])
  // A server could create a missing file, and the next `npm start` would follow it.
  for (const name of ['node_modules', '.npmrc', 'npm-shrinkwrap.json']) expect(existsSync(join(root, name))).toBe(true)
})

// Checked: if it looks in every folder above, "planted" is printed.
it('the start script looks for Node only beside and in its package', () => {
  const { dir, beside, root } = install()
  const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
  const run = () => execFileSync(join(beside, '.bin/mcp-orchestrator'), { encoding: 'utf8', env }).trim()
  for (const folder of [dir, join(root, 'bin')]) plant(join(folder, 'node_modules'))
  expect(run()).toBe('ours')
  plant(beside)
  expect(run()).toBe('planted')
})

// Checked: if only our own program is listed, a server can write the certificates that the next start trusts.
it('programs include the files that the settings and the environment make us trust', () => {
  const dir = temporaryFolder()
  const [prices, certificates] = [join(dir, 'prices.json'), join(dir, 'ca.pem')]
  const settings = loadSettings({ env: { DATA_DIR: dir, MCP_CONFIG: join(dir, 'mcp.json'), MODEL_PRICES: prices } })
  const environment = { HOME: dir, NODE_EXTRA_CA_CERTS: certificates }
  expect(ourPlaces(settings, { environment }).programs).toEqual(expect.arrayContaining([prices, certificates]))
  expect(ourPlaces(settings, { environment: { HOME: dir } }).programs).not.toContain(certificates)
})

// Checked: if only the sockets of engines are listed, the token of the pod and the kubeconfig are not among the places.
it('what opens the cluster of the sandboxes is hidden on an instance that others use, and can never be changed', () => {
  const dir = temporaryFolder()
  const files = [join(dir, 'a.yaml'), join(dir, 'b.yaml')]
  const env = {
    DATA_DIR: dir,
    MCP_CONFIG: join(dir, 'mcp.json'),
    SANDBOX_ENGINE: 'kubernetes',
    KUBERNETES_IMAGE: 'r/i'
  }
  const placesOf = (more: Record<string, string>) =>
    ourPlaces(loadSettings({ env: { ...env, ...more } }), { environment: { HOME: dir } })
  const AUTH_TOKEN = 'a-token-of-a-team-with-enough-length'
  const hosted = placesOf({ AUTH_TOKEN, KUBECONFIG: files.join(':') })
  expect(hosted.engines).toEqual(expect.arrayContaining(['/var/run/secrets/kubernetes.io', ...files]))
  expect(placesOf({ AUTH_TOKEN }).engines).toContain(join(dir, '.kube/config'))
  const own = placesOf({ KUBECONFIG: files.join(':') })
  expect([own.engines, own.programs]).toEqual([[], expect.arrayContaining(files)])
})

// Checked: if only the kubeconfig is listed, a server can write the program that the next start runs, or another token.
it('what a kubeconfig names is protected like itself: certificates, tokens, programs', () => {
  const dir = temporaryFolder()
  const put = (name: string, text = '') => {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text, { mode: 0o755 })
    return join(dir, name)
  }
  const named = [put('ca.pem'), put('certs/client.pem'), put('token'), put('bin/login'), put('more/script.sh')]
  const kubeconfig = put(
    'kubeconfig',
    `clusters: [{name: c, cluster: {certificate-authority: "ca.pem", server: https://127.0.0.1:1}}]
users:
- name: u
  user:
    client-certificate: certs/client.pem
    tokenFile: ${dir}/token
    exec:
      command: login
      args:
      - ${dir}/more/script.sh
`
  )
  const env = { DATA_DIR: dir, MCP_CONFIG: put('mcp.json'), SANDBOX_ENGINE: 'kubernetes', KUBERNETES_IMAGE: 'r/i' }
  const settings = loadSettings({ env: { ...env, KUBECONFIG: kubeconfig } })
  const environment = { HOME: dir, PATH: `/nowhere:${dir}/bin` }
  expect(ourPlaces(settings, { environment }).programs).toEqual(expect.arrayContaining(named))
})
