/** A minimal relay from HTTP to a command on stdio. Prints its port on stdout. */
import { spawn } from 'node:child_process'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] })
const waiting: ServerResponse[] = []
createInterface({ input: child.stdout }).on('line', (line) => {
  if (line.includes('"method"')) return
  waiting.shift()?.writeHead(200, { 'content-type': 'application/json' }).end(line)
})
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => {
    body += chunk
  })
  request.on('end', () => {
    if (body.includes('"id"')) waiting.push(response)
    else response.writeHead(request.method === 'POST' ? 202 : 405).end()
    if (body !== '') child.stdin.write(`${body}\n`)
  })
})
process.once('SIGTERM', () => {
  child.kill()
  process.exit()
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
