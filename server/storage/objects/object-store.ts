/**
 * Objects in a bucket, by key. It knows nothing about sessions. Every call has a deadline that grows with its size and is retried;
 * it throws `objects_unavailable` if the service does not answer in time, and `objects_refused` if trying again would not help.
 */

/** Content that can be read more than once, because a request may be repeated. */
export interface ObjectContent {
  bytes: number
  read(offset: number, length: number): Promise<Uint8Array>
}

export interface StoredObject {
  key: string
  bytes: number
  /** On the clock of the service. */
  modifiedAt: number
}

/** An upload in parts that was never completed. */
export interface OpenUpload {
  key: string
  uploadId: string
  startedAt: number
}

export interface ObjectPage<T> {
  found: T[]
  /** Pass it on to get the next page. */
  next?: string
  /** The clock of the service. */
  now: number
}

export interface ObjectStore {
  /** Durable when it resolves. Nobody sees a part of it. An object under this key is replaced. */
  put(key: string, content: ObjectContent): Promise<void>
  /** Returns false if there is an object under this key. If several call it at once, one of them gets true. */
  create(key: string, content: Uint8Array): Promise<boolean>
  /** Reads up to `length` bytes; `total` is the size of the object. Returns undefined if there is no such object. */
  read(key: string, offset: number, length: number): Promise<{ bytes: Buffer; total: number } | undefined>
  list(prefix: string, from?: string): Promise<ObjectPage<StoredObject>>
  remove(keys: readonly string[]): Promise<void>
  listUploads(prefix: string, from?: string): Promise<ObjectPage<OpenUpload>>
  abortUpload(upload: OpenUpload): Promise<void>
  /** Resolves if the bucket answers to these credentials. */
  probe(): Promise<void>
  close(): void
}

export function contentOf(bytes: Uint8Array): ObjectContent {
  return { bytes: bytes.length, read: async (offset, length) => bytes.subarray(offset, offset + length) }
}
