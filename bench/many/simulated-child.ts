/** A small MCP server with 20 tools of one subject. */
import { serveLines, text } from '../../tests/fixtures/children/serve-lines.ts'
import { toolsOf } from './simulated-tools.ts'

const [at = '0'] = process.argv.slice(2)
serveLines(toolsOf(Number(at)).map((tool) => ({ ...tool, run: (args) => text(JSON.stringify(args)) })))
