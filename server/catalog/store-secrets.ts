/** Writes secrets into the credentials file, in the form that the file has: lines or JSON. */
import { parseEnv } from 'node:util'
import { AppError } from '../lib/errors.ts'
import { linesOf, openCredentials } from './credentials.ts'
import { editFile } from './edit-file.ts'

/** Adds secrets to an existing file. Refuses to change the value of a name that is already there. */
export function storeSecrets(file: string, secrets: Map<string, string>): Promise<void> {
  return editFile(file, (before = '') => {
    const known = secretsIn(file)
    const fresh = [...secrets].filter(([name]) => known.secret(name) === undefined)
    const taken = [...secrets].find(([name, value]) => ![undefined, value].includes(known.secret(name)))
    if (taken) {
      const message = `The credentials file has another secret called ${taken[0]}: rename one of them.`
      throw new AppError('conflict', 'secret_exists', message)
    }
    return isJson(before) ? addMembers(before, fresh) : appendLines(before, fresh)
  })
}

/** Adds one secret or replaces its value. Creates the file if there is none. */
export function setSecret(file: string, name: string, value: string): Promise<void> {
  return editFile(file, (before) => {
    if (before !== undefined) secretsIn(file)
    // JSON can hold any value, so a new file is JSON.
    if (!before?.trim()) return addMembers('{}', [[name, value]])
    if (isJson(before)) return addMembers(before, [[name, value]])
    return appendLines(linesWithout(before, name), [[name, value]])
  })
}

export function removeSecret(file: string, name: string): Promise<void> {
  return editFile(file, (before = '') => {
    if (before !== '') secretsIn(file)
    if (!isJson(before)) return linesWithout(before, name)
    const { [name]: _, ...others } = JSON.parse(before)
    return addMembers(JSON.stringify(others), [])
  })
}

function linesWithout(text: string, name: string): string {
  const others = linesOf(text).lines.filter((line) => line.name !== name)
  return others.map((line) => line.text).join('')
}

/** Throws if the file can't be used. Secrets in the environment don't count. */
function secretsIn(file: string) {
  return openCredentials({ file, environment: {}, ours: [] }).source()
}

function isJson(text: string): boolean {
  return text.trimStart().startsWith('{')
}

function addMembers(before: string, fresh: [string, string][]): string {
  return `${JSON.stringify({ ...JSON.parse(before), ...Object.fromEntries(fresh) }, null, 2)}\n`
}

function appendLines(before: string, fresh: [string, string][]): string {
  const lines = fresh.map(([name, value]) => {
    const line = ["'", '`', '"']
      .map((quote) => `${name}=${quote}${value}${quote}`)
      .find((each) => parseEnv(each)[name] === value)
    if (line !== undefined) return line
    const message = `${name} can't be written as a line of the credentials file: make that file JSON, or write it by hand.`
    throw new AppError('invalid', 'credentials_unreadable', message)
  })
  return [before.trimEnd(), ...lines, ''].join('\n').trimStart()
}
