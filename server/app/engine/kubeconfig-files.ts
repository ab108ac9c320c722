/**
 * The files that a kubeconfig names: certificates, tokens, and the program that makes a token. Who can change one of them can use the
 * cluster, or run a program as us. Takes every word that is the path of a file, so that no key and no form of YAML is missed.
 */
import { statSync } from 'node:fs'
import { delimiter, dirname, resolve } from 'node:path'
import { readSmallFile } from '../../lib/files/read-small-file.ts'

const MAX_BYTES = 1024 * 1024
const MAX_WORDS = 10_000
const WORD = /[^\s"'`,[\]{}]+/g
const NAMED_PROGRAM = /\bcommand["']?\s*:\s*["']?([^\s"'/,{}]+)/g

export function filesOfKubeconfig(kubeconfig: string, path = ''): string[] {
  const text = textOf(kubeconfig)
  const words = (text.match(WORD) ?? []).slice(0, MAX_WORDS)
  const programs = [...text.matchAll(NAMED_PROGRAM)].flatMap(([, name = '']) =>
    path.split(delimiter).flatMap((folder) => (folder === '' ? [] : [resolve(folder, name)]))
  )
  const files = [...words.map((word) => resolve(dirname(kubeconfig), word)), ...programs]
  return [...new Set(files)].filter((file) => file !== kubeconfig && isFile(file))
}

function textOf(file: string): string {
  try {
    return readSmallFile(file, MAX_BYTES, { anyKind: true })
  } catch {
    // The engine says what is wrong with it.
    return ''
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
