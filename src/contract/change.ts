/** A change that a request with a key has made. It holds no content of the request. */
export type Change = {
  /** In ms. */
  at: number
  key_id: string
  key_name: string
  /** The strongest base role of the key. */
  role: string
  /** The operationId, such as `deleteKey`. */
  action: string
  method: string
  /** The scope that was changed; null for what belongs to no one scope, such as a key. */
  scope: string | null
  /** The scope, or else the scopes of the key: a reader of the change covers them all. */
  reach: readonly string[]
  /** The id or name of what was changed; null if the request names none. */
  target: string | null
  trace_id: string | null
}
