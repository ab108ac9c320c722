/**
 * The source of the thread that runs the model. It is text, because our bundles are single files and a thread needs one of its own. It
 * uses the package's WASM engine directly: the package's own code would start a thread per core. It runs and reads exactly the bytes
 * that it has checked, so a file that is replaced meanwhile has no effect.
 */
export const MINILM_THREAD = `
const { createHash } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { parentPort, workerData } = require('node:worker_threads')

function checked({ path, sha256 }) {
  const content = readFileSync(path)
  if (createHash('sha256').update(content).digest('hex') === sha256) return content
  throw new Error(path + ' is not the expected file. Run mcp-orchestrator embeddings install.')
}

const { engine, wasm, weights, tokenizer, config, maxTokens } = workerData
const glue = { exports: {} }
const onlyItsWasm = (name) => {
  if (name === 'fs') return { readFileSync: () => checked(wasm) }
  if (name === 'util') return require('node:util')
  throw new Error('The engine asked for ' + name)
}
new Function('require', 'module', 'exports', '__dirname', checked(engine).toString('utf8'))(onlyItsWasm, glue, glue.exports, '')
const model = new glue.exports.Embedder(checked(weights), checked(tokenizer), checked(config), maxTokens)

parentPort.on('message', ({ id, texts }) => {
  try {
    // One at a time: in a batch, all texts cost as much as the longest.
    const vectors = texts.map((text) => Float32Array.from(model.embed([text])[0]))
    parentPort.postMessage({ id, vectors })
  } catch (error) {
    parentPort.postMessage({ id, error: String(error) })
  }
})
`
