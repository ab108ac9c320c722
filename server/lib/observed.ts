/** How one operation of a port went. */
export interface Operation {
  name: string
  ms: number
  /** Undefined: it succeeded. */
  error?: unknown
  /** Bytes that were moved, if that is known. */
  bytes?: number
}

/**
 * The same port, with every asynchronous operation reported when it ends. Adapters need not know that they are measured.
 * Methods run on the adapter itself, so private fields work; what is no promise is passed through.
 */
export function observed<T extends object>(port: T, report: (operation: Operation) => void): T {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function' || typeof name !== 'string') return value
      return (...args: unknown[]) => {
        const began = performance.now()
        const result: unknown = Reflect.apply(value, target, args)
        if (!(result instanceof Promise)) return result
        return result.then(
          (answer) => {
            report({ name, ms: performance.now() - began })
            return answer
          },
          (error) => {
            report({ name, ms: performance.now() - began, error })
            throw error
          }
        )
      }
    }
  })
}
