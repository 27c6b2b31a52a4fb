import { z } from 'zod'
import { HOOK_SECRET_PREFIX, isList, SECRET_SCOPES, TOOL_SECRET_HOSTS } from '../../../base/secrets.ts'
import { scopeName } from '../../../core/event.ts'

export const hookSchemes = ['standard', 'github', 'stripe', 'slack', 'telegram'] as const
export type HookScheme = (typeof hookSchemes)[number]

/** The variable of the deployment that has the secret of a hook, unless the hook names another. */
const ownSecret = (name: string): HookSecret => `${HOOK_SECRET_PREFIX}${name.toUpperCase().replaceAll('-', '_')}`
type HookSecret = `REFLEX_HOOK_${string}`

const hookName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'a name is 1 to 32 of a-z 0-9 and -, and begins with a letter')
  .refine((name) => !isList(ownSecret(name)), 'must not end with -hosts or -scopes')

/**
 * The last part of the address to which a hook's deliveries go. The part of a tenant's hook cannot
 * be guessed, and the name of one tenant's hook takes none from another tenant.
 */
export const hookAddress = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,31}(?:\.[0-9a-f]{12})?$/,
    'a name is 1 to 32 of a-z 0-9 and -, and begins with a letter; an address may have a second part',
  )
  .refine((address) => hookName.safeParse(nameOfHook(address)).success, 'must be the name of a hook, or its address')
export const nameOfHook = (address: string): string => address.split('.', 1)[0] ?? ''
/** True for the address of a tenant's hook. */
export const isTenantAddress = (address: string): boolean => address.includes('.')

const hookSecret = z
  .templateLiteral([HOOK_SECRET_PREFIX, z.string().regex(/^[A-Z0-9_]{1,64}$/)])
  .refine((secret) => !isList(secret), `must not end with ${TOOL_SECRET_HOSTS} or ${SECRET_SCOPES}`)

export const secretOfHook = ({ address, mapping }: { address: string; mapping: { secret?: HookSecret | undefined } }): HookSecret =>
  mapping.secret ?? ownSecret(nameOfHook(address))

const expression = z.string().min(1).max(2000)

const PLACE = /\{\{[^{}]+\}\}/g
/** A placeholder stands for at least one character. */
const isTemplate = (scope: string): boolean => /^[^{]/.test(scope) && scopeName.safeParse(scope.replaceAll(PLACE, 'x')).success

/** All scopes that a hook's `scope` can name, as a pattern. */
export const reachOf = (scope: string): string => scope.replaceAll(PLACE, '*')

export const hasPlaces = (scope: string): boolean => scope.includes('{')

const hookScope = z
  .string()
  .max(500)
  .refine((scope) => (hasPlaces(scope) ? isTemplate(scope) : scopeName.safeParse(scope).success), {
    error:
      'must be 1 to 128 characters of A-Z a-z 0-9 . _ : @ - and /, and neither . nor ..; ' +
      'placeholders such as {{body.from}} may follow a fixed beginning',
  })

export const newHook = z.strictObject({
  scope: hookScope.describe(
    'The scope that gets the events. After a fixed beginning it may have placeholders, each an expression in CEL on `body`: `support/{{body.from}}`. ' +
      'In the values, all but letters, digits and `._@-` is written as `:` and two hex digits for each byte.',
  ),
  form: z
    .boolean()
    .optional()
    .describe('True: a body that is not JSON is read as `application/x-www-form-urlencoded`. Without it, forms are refused.'),
  scheme: z
    .enum(hookSchemes)
    .describe(
      'How a delivery is signed. `standard`: Standard Webhooks. `github`: X-Hub-Signature-256. `stripe`: Stripe-Signature. `slack`: X-Slack-Signature. ' +
        '`telegram`: X-Telegram-Bot-Api-Secret-Token, which signs nothing.',
    ),
  secret: hookSecret
    .optional()
    .describe('The deployment secret that verifies deliveries. Unless set: `REFLEX_HOOK_NAME`, in upper case with `_` for `-`.'),
  when: expression
    .optional()
    .describe(
      'A condition in CEL on `body` and `headers` (names in lower case). Deliveries that do not meet it are ignored. Most senders sign no header: decide by the body.',
    ),
  each: expression.optional().describe('A list in CEL, such as `body.commits`: one event for each `item`. Without it: one event.'),
  event: z
    .record(z.string().regex(/^[A-Za-z_]\w{0,63}$/, 'must be the name of a field'), expression)
    .refine((fields) => Object.keys(fields).length <= 30, 'must be at most 30 fields')
    .refine((fields) => 'type' in fields, 'must have a type')
    .refine((fields) => !('scope' in fields) && !('meta' in fields), 'must not have a scope or meta: the hook decides them')
    .optional()
    .describe(
      'The fields of the event, each a CEL expression on `body`, `headers` and `item`. Without it: an `http.request` with the body.',
    ),
})
export type NewHook = z.infer<typeof newHook>

export const hook = newHook
  .extend({
    name: hookName,
    address: hookAddress.describe('Deliveries go to `POST /v1/hooks/ADDRESS`. It is the name, unless a key of some scopes made the hook.'),
    secret: z.string().describe('The name of the deployment secret that verifies deliveries.'),
    secret_set: z.boolean(),
    warnings: z.array(z.string()).optional().describe('What may not work, or is not safe. Only in the answer to `PUT`.'),
    counts: z.record(z.string(), z.int()).describe('Deliveries by result: `accepted`, `duplicate`, `ignored`, or why they were refused.'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Hook' })
