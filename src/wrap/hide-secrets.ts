import { secretHider } from '../protocol/secrets.ts'

/** A copy of a value without the secrets that may have come back in it, however short: these were sent there. */
export const hideSecrets = (value: unknown, secrets: readonly string[]): unknown => secretHider(secrets, 1).value(value)
