/** The real client, on a service in memory or on the one that `TEST_S3_ENDPOINT` names, for tests. */
import type { RequestLimits } from './retried.ts'
import { S3ObjectStore } from './s3-object-store.ts'

const { TEST_S3_ENDPOINT: endpoint, TEST_S3_BUCKET: bucket = 'tests' } = process.env
const { TEST_S3_ACCESS_KEY_ID: accessKeyId, TEST_S3_SECRET_ACCESS_KEY: secretAccessKey } = process.env

export const TEST_CREDENTIALS = { accessKeyId: accessKeyId ?? 'test', secretAccessKey: secretAccessKey ?? 'test' }

/** `npm test` starts one or says once that there is none. */
export const hasRealService = Boolean(endpoint && accessKeyId && secretAccessKey)

export function openTestObjects(options: { endpoint?: string; limits?: RequestLimits }): S3ObjectStore {
  return new S3ObjectStore({
    bucket,
    endpoint: options.endpoint ?? endpoint,
    region: 'us-east-1',
    isPathStyle: true,
    credentials: TEST_CREDENTIALS,
    ...(options.limits && { limits: options.limits })
  })
}
