import { ToolError } from './tool.ts'

export interface IntegerRange {
  min: number
  max: number
}

/** Reads the arguments of one call; every error is a sentence that names the argument. */
export class ToolArguments {
  readonly #args: Record<string, unknown>

  constructor(args: Record<string, unknown>, known: string[]) {
    this.#args = args
    const unknown = Object.keys(args).find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw new ToolError(`There is no argument "${unknown.slice(0, 100)}"; the arguments are ${known.join(', ')}.`)
  }

  text(name: string, maxChars: number): string {
    const value = this.#args[name]
    if (value === undefined) throw new ToolError(`The argument "${name}" is missing.`)
    if (typeof value !== 'string') throw new ToolError(`The argument "${name}" must be a string.`)
    if (value.length > maxChars)
      throw new ToolError(`The argument "${name}" has ${value.length} characters; at most ${maxChars} are allowed.`)
    return value
  }

  optionalText(name: string, maxChars: number): string | undefined {
    return this.#args[name] === undefined ? undefined : this.text(name, maxChars)
  }

  /** Reads a text that the kernel gets as a C string. */
  textWithoutNul(name: string, maxChars: number): string {
    const value = this.text(name, maxChars)
    if (value.includes('\0')) throw new ToolError(`The argument "${name}" must not contain NUL characters.`)
    return value
  }

  path(name: string, fallback?: string): string {
    if (fallback !== undefined && this.#args[name] === undefined) return fallback
    const value = this.textWithoutNul(name, 4096)
    if (value === '') throw new ToolError(`The argument "${name}" must not be empty.`)
    return value
  }

  integer(name: string, range: IntegerRange): number | undefined {
    const value = this.#args[name]
    if (value === undefined) return undefined
    if (typeof value !== 'number' || !Number.isInteger(value) || value < range.min || value > range.max)
      throw new ToolError(`The argument "${name}" must be a whole number from ${range.min} to ${range.max}.`)
    return value
  }

  number(name: string, range: IntegerRange, fallback: number): number {
    const value = this.#args[name]
    if (value === undefined) return fallback
    if (typeof value !== 'number' || !(value >= range.min && value <= range.max))
      throw new ToolError(`The argument "${name}" must be a number from ${range.min} to ${range.max}.`)
    return value
  }

  flag(name: string): boolean {
    const value = this.#args[name] ?? false
    if (typeof value !== 'boolean') throw new ToolError(`The argument "${name}" must be true or false.`)
    return value
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.#args[name]
    if (value === undefined) return fallback
    const found = choices.find((choice) => choice === value)
    if (found === undefined) throw new ToolError(`The argument "${name}" must be one of ${choices.join(', ')}.`)
    return found
  }
}
