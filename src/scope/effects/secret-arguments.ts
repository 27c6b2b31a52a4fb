import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Env } from '../../env.ts'
import { deploymentHider, secretHider, type SecretHider } from '../../base/secrets.ts'
import { namedIn, withSecrets } from '../../skills/plan/secret-reference.ts'
import { secretOf } from '../../tools/tool-secrets.ts'

type Called = { tool: string; definition: ToolDefinition; input: unknown; secrets?: readonly string[] | undefined }
/** `names`: the secrets in the input. `hider` masks them at any length, and all known secrets. */
export type Filled = { input: unknown; names: readonly string[]; hider: SecretHider }

/**
 * Fills in the secrets that the input names. Throws if the tool may not have one: it must declare
 * its hosts.
 */
export function fillSecrets(env: Env, { tool, definition, input, secrets = [] }: Called): Filled {
  const known = deploymentHider(env)
  const names = secrets.length === 0 ? [] : namedIn(input, secrets)
  if (names.length === 0) return { input, names, hider: known }
  const refusal = definition.secret_refusal
    ? definition.secret_refusal(env, names)
    : `it is not known where the tool sends what it is given`
  if (refusal !== null) throw new Error(`tool ${tool} is given no secret: ${refusal}`)
  const values = new Map(names.map((name) => [name, valueOf(env, name)]))
  const own = secretHider([...values.values()], 1)
  const hider: SecretHider = {
    finds: (text) => own.finds(text) || known.finds(text),
    text: (text) => known.text(own.text(text)),
    value: (value) => known.value(own.value(value)),
  }
  return { input: withSecrets(input, values), names, hider }
}

function valueOf(env: Env, name: string): string {
  const value = secretOf(env, name)
  if (value === undefined || value === '') throw new Error(`the secret ${name} is not set: set it with \`npx wrangler secret put ${name}\``)
  return value
}
