/** A relay that only copies bytes to and from a command. It shows what any process in between costs. */
import { spawn } from 'node:child_process'

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] })
process.stdin.pipe(child.stdin)
child.stdout.pipe(process.stdout)
child.once('exit', () => process.exit())
