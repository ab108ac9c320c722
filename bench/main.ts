/** `npm run bench [name…]` prints all figures as JSON on stdout, measured side by side in one run, and progress on stderr. */
import { cpus, totalmem } from 'node:os'
import { chatFigures } from './chat.ts'
import { codeFigures } from './code.ts'
import { fileFigures } from './files.ts'
import { forkFigures } from './forks.ts'
import { gatewayFigures } from './gateway.ts'
import { interruptionFigures } from './interruptions.ts'
import { kubernetesFigures } from './kubernetes.ts'
import { manyFigures } from './many.ts'
import { readerFigures } from './readers.ts'
import { routingFigures } from './routing.ts'
import { withRoutingData } from './routing-data.ts'
import { sandboxFigures } from './sandbox.ts'
import { sentenceFigures } from './sentences.ts'
import { webFigures } from './web.ts'

const SUITES: Record<string, () => Promise<object>> = {
  sandbox: sandboxFigures,
  kubernetes: kubernetesFigures,
  chat: chatFigures,
  files: fileFigures,
  forks: forkFigures,
  interruptions: interruptionFigures,
  web: webFigures,
  gateway: gatewayFigures,
  many: manyFigures,
  code: codeFigures,
  routing: () => withRoutingData(routingFigures),
  sentences: () => sentenceFigures(process.argv.includes('--list')),
  readers: () => withRoutingData((folder) => readerFigures(folder, process.argv.includes('--list')))
}

const wanted = process.argv.slice(2).filter((word) => word !== '--list')
const unknown = wanted.filter((name) => !SUITES[name])
if (unknown.length > 0) {
  console.error(`No such bench: ${unknown.join(', ')}. There are ${Object.keys(SUITES).join(', ')}.`)
  process.exit(2)
}
const machine = { node: process.version, cpus: cpus().length, memoryGb: Math.round(totalmem() / 2 ** 30) }
const figures: Record<string, object> = {}
for (const [name, suite] of Object.entries(SUITES)) {
  if (wanted.length === 0 || wanted.includes(name)) figures[name] = await suite()
}
console.log(JSON.stringify({ machine, ...figures }, null, 2))
process.exit(0)
