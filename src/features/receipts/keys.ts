import { createHash } from 'node:crypto'
import { z } from 'zod'
import { jsonValue } from '../../base/json.ts'
import { oncePer } from '../../base/once-per.ts'
import type { PublicKeys } from './contract/receipt.ts'
import { hex } from './chain.ts'

const part = z.string().regex(/^[\w-]{43}$/)
const time = z.iso.datetime()
/** The secret: the newest key first, with its private part. The others sign no more. */
const secret = z.object({
  keys: z
    .array(z.object({ key: z.string().regex(/^[\da-f]{16}$/), x: part, d: part.optional(), from: time, until: time.optional() }))
    .min(1)
    .refine(([first]) => first?.d !== undefined, 'the first key has no private part `d`')
    .refine((keys) => keys.every(({ key, x }) => key === keyName(x)), 'a key does not have the name that follows from its `x`'),
})
export type KeySecret = z.infer<typeof secret>
type Variables = { REFLEX_RECEIPTS_KEY?: string | undefined }

/** The name of a public key, by its hash. `x`: the key as in a JWK. */
export const keyName = (x: string): string => createHash('sha256').update(Buffer.from(x, 'base64url')).digest('hex').slice(0, 16)

/** Signs heads and files of a deployment. */
export type Signer = { key: string; sign: (text: string | Uint8Array) => Promise<string> }

type Configured = { ok: true; keys: KeySecret['keys'] } | { ok: false; problem: string | null }

function configured({ REFLEX_RECEIPTS_KEY: text = '' }: Variables): Configured {
  if (text.trim() === '') return { ok: false, problem: null }
  const parsed = secret.safeParse(jsonValue(text))
  if (parsed.success) return { ok: true, keys: parsed.data.keys }
  const [issue] = parsed.error.issues
  const problem = `REFLEX_RECEIPTS_KEY is not what \`reflex receipts init\` writes: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`
  return { ok: false, problem }
}

export function keyProblem(env: Variables): string | null {
  const found = configured(env)
  return found.ok ? null : found.problem
}

/** The public keys, newest first; none without a secret. */
export function publicKeys(env: Variables): PublicKeys {
  const found = configured(env)
  const keys = found.ok ? found.keys : []
  return { keys: keys.map(({ key, x, from, until = null }) => ({ key, algorithm: 'Ed25519', x, from, until })) }
}

/** Null if the deployment has no key. */
export const signerOf = oncePer((env: Variables): Signer | null => {
  const found = configured(env)
  const [newest] = found.ok ? found.keys : []
  if (newest?.d === undefined) return null
  const { key, x, d } = newest
  const imported = crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x, d }, { name: 'Ed25519' }, false, ['sign'])
  imported.catch(() => {})
  const sign = async (text: string | Uint8Array) => {
    const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text
    return hex(new Uint8Array(await crypto.subtle.sign({ name: 'Ed25519' }, await imported, bytes)))
  }
  return { key, sign }
})
