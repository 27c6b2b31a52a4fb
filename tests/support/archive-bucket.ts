/** Scopes with this prefix have an archive. */
export const ARCHIVED = 'test/archived'

/** A test's hooks around the calls of a scope's bucket. An error fails the call. */
type Hooks = { before?: (call: 'put' | 'get', path: string) => unknown; after?: (call: 'put', path: string) => unknown }
export const hooks = new Map<string, Hooks>()
/** Every put that reached the bucket, in order. */
export const puts: { scope: string; path: string; bytes: Uint8Array }[] = []

/** The bucket of a scope, as its test has prepared it. */
export function bucketOf(scope: string, bucket: R2Bucket): R2Bucket {
  const hook = () => hooks.get(scope) ?? {}
  const calls: Pick<R2Bucket, 'delete'> & { put: unknown; get: unknown } = {
    async put(path: string, bytes: Uint8Array, options: R2PutOptions) {
      await hook().before?.('put', path)
      const put = await bucket.put(path, bytes, options)
      puts.push({ scope, path, bytes })
      await hook().after?.('put', path)
      return put
    },
    async get(path: string) {
      await hook().before?.('get', path)
      return bucket.get(path)
    },
    delete: (paths) => bucket.delete(paths),
  }
  return calls as R2Bucket
}
