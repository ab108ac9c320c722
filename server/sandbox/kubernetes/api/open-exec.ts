import type { KubeConfig } from '@kubernetes/client-node'
import { type ClientOptions, WebSocket } from 'ws'
import { ApiRefusal, statusMessage } from './api-error.ts'
import { ExecStream } from './exec-stream.ts'

const HANDSHAKE_MS = 30_000
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
const MAX_REFUSAL_BYTES = 4096
/** The first protocol that can close the input alone; Kubernetes has it since 1.30. */
const PROTOCOL = 'v5.channel.k8s.io'

interface ExecRequest {
  namespace: string
  pod: string
  container: string
  command: string[]
}

/** Opens the stream into a pod. The client library only builds the options: its own stream class ignores slow readers and does not report the end. */
export async function openExec(
  config: KubeConfig,
  { namespace, pod, container, command }: ExecRequest,
  signal: AbortSignal
): Promise<ExecStream> {
  const query = new URLSearchParams({
    container,
    stdin: 'true',
    stdout: 'true',
    stderr: 'true',
    tty: 'false'
  })
  for (const part of command) query.append('command', part)
  const server = config.getCurrentCluster()?.server.replace(/^http/, 'ws') ?? ''
  const options: ClientOptions = {
    handshakeTimeout: HANDSHAKE_MS,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false
  }
  await config.applyToHTTPSOptions(options)
  // A plugin for credentials may take as long as it likes.
  signal.throwIfAborted()
  const uri = `${server}/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`
  const socket = new WebSocket(uri, [PROTOCOL], options)
  const stream = new ExecStream(socket)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('open', resolve)
  socket.once('error', reject)
  socket.once('unexpected-response', (_request, response) => {
    void readRefusal(response).then((refusal) => {
      reject(refusal)
      socket.terminate()
    })
  })
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    await promise
    signal.throwIfAborted()
    return stream
  } catch (error) {
    stream.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function readRefusal(response: AsyncIterable<Buffer> & { statusCode?: number | undefined }): Promise<ApiRefusal> {
  let text = ''
  try {
    for await (const chunk of response) {
      text += chunk.toString('utf8')
      if (text.length > MAX_REFUSAL_BYTES) break
    }
  } catch {
    // The part that was read is enough.
  }
  return new ApiRefusal(response.statusCode ?? 500, statusMessage(text))
}
