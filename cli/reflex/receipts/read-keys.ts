import { isJsonFields, jsonValue } from '../../../src/base/json.ts'
import type { PublicKeys } from '../../../src/features/receipts/contract/receipt.ts'
import { keyName } from '../../../src/features/receipts/keys.ts'
import { CliError } from '../../lib/cli-error.ts'
import { fileText } from '../values.ts'

/** Public keys, from what a server publishes, or from the secret. */
export function readKeys(file: string): PublicKeys {
  const value = jsonValue(fileText(file))
  const keys = isJsonFields(value) && Array.isArray(value['keys']) ? (value['keys'] as unknown as PublicKeys['keys']) : []
  if (keys.length === 0 || !keys.every(({ key, x }) => typeof x === 'string' && keyName(x) === key))
    throw new CliError(`${file} has no keys of receipts.`, 'curl https://YOUR-DEPLOYMENT/.well-known/reflex-receipts.json > keys.json')
  return { keys: keys.map(({ key, x, from, until }) => ({ key, algorithm: 'Ed25519', x, from, until: until ?? null })) }
}
