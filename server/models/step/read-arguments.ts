import { parseHostileJson } from '../../lib/streams/hostile-json.ts'

export type Arguments = { value: Record<string, JsonValue>; invalid?: never } | { value?: never; invalid: string }
type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }

/** Parses the model's arguments as an object; returns a sentence with the reason if they are not one. */
export function readArguments(args: string): Arguments {
  let value: unknown
  try {
    value = parseHostileJson(Buffer.from(args))
  } catch (error) {
    return { invalid: `The arguments are not valid JSON: ${error instanceof Error ? error.message : 'unreadable'}.` }
  }
  return isObject(value) ? { value } : { invalid: 'The arguments are not a JSON object.' }
}

function isObject(value: unknown): value is Record<string, JsonValue> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
