/**
 * A real S3 service for the tests: Ceph (a monitor, a disk in memory, and its S3 gateway) on 127.0.0.1, from the installed packages.
 * Prints the TEST_S3_ settings when it answers, and ends at TERM, with all that it started. For scripts/with-services.sh.
 *
 *   node scripts/ceph-service.ts FOLDER    the folder must be empty
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { freePort } from '../tests/support/free-port.ts'

const DEADLINE_MS = 120_000
const BUCKET = 'tests'

const dir = resolve(process.argv[2] ?? '')
const conf = join(dir, 'ceph.conf')
const daemons = new Map<string, ChildProcess>()
const ending = new AbortController()
const until = AbortSignal.any([ending.signal, AbortSignal.timeout(DEADLINE_MS)])

async function run(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { signal: until, maxBuffer: 16 * 1024 * 1024 })
  return stdout
}

const ceph = (...args: string[]) => run('ceph', '-c', conf, '--connect-timeout', '20', ...args)

function launch(name: string, program: string, ...args: string[]): void {
  const log = openSync(join(dir, `${name}.err`), 'a')
  const child = spawn(program, ['-c', conf, '-f', ...args], { stdio: ['ignore', log, log] })
  closeSync(log)
  child.once('error', (error) => void end(`${program}: ${error.message}`))
  child.once('exit', (code) => void end(`${program} ended with ${code}`))
  daemons.set(name, child)
}

function configuration(fsid: string, ports: { monitor: number; gateway: number }): string {
  return `[global]
fsid = ${fsid}
mon_host = [v2:127.0.0.1:${ports.monitor}]
mon_initial_members = a
public_addr = 127.0.0.1
# Without it, the disk also listens on all addresses.
cluster_addr = 127.0.0.1
# The gateway does not start without authentication.
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
keyring = ${dir}/keyring
run_dir = ${dir}
crash_dir = ${dir}
log_file = ${dir}/$name.log
mon_cluster_log_file = ${dir}/cluster.log
admin_socket =
pid_file =
mon_data = ${dir}/mon
mon_data_avail_crit = 1
mon_allow_pool_size_one = true
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
osd_data = ${dir}/osd
osd_objectstore = memstore
memstore_device_bytes = ${8 * 1024 ** 3}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
crush_location = root=default host=tests
[client.rgw]
rgw_data = ${dir}/rgw
# Without tcp_nodelay, each answer takes 40 ms longer.
rgw_frontends = beast endpoint=127.0.0.1:${ports.gateway} tcp_nodelay=1
# Frees the memory of deleted objects soon.
rgw_gc_obj_min_wait = 30
rgw_gc_processor_period = 30
`
}

async function start(): Promise<string> {
  const [fsid, disk] = [randomUUID(), randomUUID()]
  const ports = { monitor: await freePort(), gateway: await freePort() }
  for (const name of ['mon', 'osd', 'rgw']) mkdirSync(join(dir, name), { recursive: true })
  writeFileSync(conf, configuration(fsid, ports))
  const all = ['mon', 'osd', 'mgr'].flatMap((name) => ['--cap', name, 'allow *'])
  await run('ceph-authtool', '-C', join(dir, 'keyring'), '--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *')
  for (const name of ['client.admin', 'client.rgw', 'osd.0']) {
    await run('ceph-authtool', join(dir, 'keyring'), '--gen-key', '-n', name, ...all)
  }
  const map = join(dir, 'monmap')
  await run('monmaptool', '--create', '--fsid', fsid, '--addv', 'a', `[v2:127.0.0.1:${ports.monitor}]`, map)
  await run('ceph-mon', '-c', conf, '--mkfs', '-i', 'a', '--monmap', map, '--keyring', join(dir, 'keyring'))
  launch('mon', 'ceph-mon', '-i', 'a')
  await run('ceph-osd', '-c', conf, '--mkfs', '-i', '0', '--osd-uuid', disk)
  await ceph('osd', 'new', disk, '0')
  launch('osd', 'ceph-osd', '-i', '0')
  while (!(await ceph('osd', 'stat')).includes(' 1 up')) await delay(100, undefined, { signal: until })
  const [key, secret] = [randomBytes(10).toString('hex'), randomBytes(20).toString('hex')]
  const user = ['--uid=test', '--display-name=test', `--access-key=${key}`, `--secret-key=${secret}`]
  await run('radosgw-admin', '-c', conf, 'user', 'create', ...user)
  launch('rgw', 'radosgw', '-n', 'client.rgw')
  const endpoint = `http://127.0.0.1:${ports.gateway}`
  await makeBucket(endpoint, { accessKeyId: key, secretAccessKey: secret })
  const settings = { ENDPOINT: endpoint, BUCKET, ACCESS_KEY_ID: key, SECRET_ACCESS_KEY: secret }
  return Object.entries(settings)
    .map(([name, value]) => `TEST_S3_${name}=${value}\n`)
    .join('')
}

async function makeBucket(endpoint: string, credentials: { accessKeyId: string; secretAccessKey: string }) {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials })
  for (;;) {
    try {
      await client.send(new CreateBucketCommand({ Bucket: BUCKET }), { abortSignal: until })
      return client.destroy()
    } catch (error) {
      if (until.aborted) throw error
      await delay(100, undefined, { signal: until })
    }
  }
}

/** The gateway first: it needs the others to end well. */
async function end(why?: string): Promise<never> {
  if (ending.signal.aborted) return new Promise(() => {})
  ending.abort()
  if (why !== undefined) process.stderr.write(`ceph-service: ${why}\n`)
  for (const name of ['rgw', 'osd', 'mon']) {
    const child = daemons.get(name)
    if (!child || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) continue
    const ended = once(child, 'exit')
    child.kill()
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
    await ended
    clearTimeout(timer)
  }
  process.exit(why === undefined ? 0 : 1)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void end())
try {
  process.stdout.write(await start())
} catch (error) {
  await end(error instanceof Error ? error.message : String(error))
}
