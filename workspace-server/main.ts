/**
 * The MCP server inside the sandbox. Owns the workspace's files, the commands that run on them, and the container's processes;
 * does not know about sessions or approval. Invariant: it acts only while its epoch is the highest that this container has seen,
 * and when its owner is gone it ends, with everything it started.
 */
import { mkdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { isMainThread } from 'node:worker_threads'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { WorkspaceCheckpoint } from './checkpoint/workspace-checkpoint.ts'
import { CODE } from './code/code-protocol.ts'
import { runRealmThread } from './code/realm-thread.ts'
import { runCodeRealm } from './code/run-realm.ts'
import { type CommandLine, parseCommandLine } from './command-line.ts'
import { createServer } from './create-server.ts'
import { runEgressRelay } from './egress-relay.ts'
import { WorkspaceRoot } from './files/workspace-root.ts'
import { readLimits } from './limits.ts'
import { LineTransport } from './line-transport.ts'
import { log } from './log.ts'
import { endOtherProcesses } from './process/container-processes.ts'
import { EpochFence } from './process/epoch-fence.ts'
import { startSignOfLife } from './process/sign-of-life.ts'
import { takeOver } from './process/take-over.ts'
import { CHECK, type CheckResult, EGRESS, INSIDE, SERVER_EXIT } from './protocol.ts'
import { reach } from './reach.ts'
import { executeCommandTool } from './tools/execute-command.ts'
import { listFilesTool } from './tools/list-files.ts'
import { readFileTool } from './tools/read-file.ts'
import { writeFileTool } from './tools/write-file.ts'
import { reachParams } from './workspace-params.ts'

const END_OTHERS_MS = 3000
/** The server ends with its owner. A command can't end it by mistake with one of these signals. */
const IGNORED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const

process.on('uncaughtException', (error) => log('Uncaught', error))
process.on('unhandledRejection', (error) => log('Unhandled', error))

async function main(options: CommandLine): Promise<void> {
  hideFromBroadKills(options.epoch)
  mkdirSync(options.state, { recursive: true })
  const fence = new EpochFence(options.state)
  if (options.resume && fence.current() <= 0) process.exit(SERVER_EXIT.nothingToResume)
  const refusal = await takeOver(fence, options.epoch)
  if (refusal !== null) process.exit(refusal)
  serve(options, fence)
}

/** Prints the limits of this container, and which targets it reaches. */
async function runCheck(): Promise<void> {
  const asked = reachParams(JSON.parse(await text(process.stdin)))
  const result: CheckResult = { ...(await reach(asked)), limits: readLimits(INSIDE.root) }
  process.stdout.write(`${JSON.stringify(result)}\n`)
}

/** People often run `pkill -f node` or `pkill -9 -f server`. They mean a command's own processes, not us. */
function hideFromBroadKills(epoch: number): void {
  process.title = `sandbox --epoch ${epoch}`
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => {})
}

function serve(options: CommandLine, fence: EpochFence): void {
  const root = new WorkspaceRoot(options.root)
  const files = new WorkspaceCheckpoint(root.path, options.state)
  // A server that ends late must not end its successor.
  const endOthers = () => endOtherProcesses({ deadlineMs: END_OTHERS_MS, mayContinue: () => fence.isMine() })
  const commands = executeCommandTool(root, endOthers, options.hide)
  const write = writeFileTool(root, (real) => files.written(root.relative(real)))
  const tools = [readFileTool(root), write, listFilesTool(root), commands.tool]
  const leave = async () => {
    commands.killAll()
    // Commands can write to the state folder, but whatever they did there, shutdown must not fail.
    await endOthers().catch((error) => log('Other processes were left behind', error))
    process.exit(0)
  }
  const life = startSignOfLife(options.state, () => void leave())
  const transport = new LineTransport(process.stdin, process.stdout, life.heard)
  serveStdio(() => createServer({ root, fence, files, tools, endOthers }), {
    transport: withShutdown(transport, () => void leave()),
    onerror: (error) => log('Protocol', error)
  })
}

/** The SDK sets `onclose` itself; ours runs after it. */
function withShutdown(transport: LineTransport, onShutdown: () => void): LineTransport {
  const close = transport.close.bind(transport)
  transport.close = async () => {
    await close()
    onShutdown()
  }
  return transport
}

try {
  const [first, ...others] = process.argv.slice(2)
  if (!isMainThread) runRealmThread()
  else if (first === CODE.command && others.length === 0) runCodeRealm()
  else if (first === EGRESS.command && others.length === 0) runEgressRelay()
  else if (first === CHECK.command && others.length === 0) await runCheck()
  else await main(parseCommandLine(process.argv.slice(2)))
} catch (error) {
  log('The server could not start', error)
  process.exit(1)
}
