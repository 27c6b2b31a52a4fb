import { z } from 'zod'
import { SECRET_SCOPES, TOOL_SECRET_HOSTS, WEBHOOK_SECRET_PREFIX } from '../../../base/secrets.ts'
import { setting } from '../../../contract/setting.ts'

/** The types of notices that a scope reports to its webhooks. */
export const noticeTypes = [
  'event.ended',
  'event.dead_lettered',
  'approval.requested',
  'reflex.demoted',
  'budget.spent',
  'alert.raised',
] as const
export type NoticeType = (typeof noticeTypes)[number]

const webhook = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must be 1 to 32 of a-z 0-9 _ and -'),
  url: z
    .string()
    .max(2000)
    .regex(/^https?:\/\/[^/?#\s@]+(?:[/?#]|$)/, 'must be an address without a password')
    .meta({
      description: 'Its host must be in `allowed_hosts`. Everybody who may view the scope sees it: use no address that is a secret.',
    }),
  secret: z
    .string()
    .regex(/^REFLEX_WEBHOOK_[A-Z0-9_]{1,64}$/, `must be the name of a secret that begins with ${WEBHOOK_SECRET_PREFIX}`)
    .refine(
      (name) => !name.endsWith(TOOL_SECRET_HOSTS),
      `must not end with ${TOOL_SECRET_HOSTS}: that variable lists the hosts of a secret`,
    )
    .refine((name) => !name.endsWith(SECRET_SCOPES), `must not end with ${SECRET_SCOPES}: that variable lists the scopes of a secret`)
    .meta({ description: 'The name of the deployment secret that signs, whose value is `whsec_` and base64.' }),
  on: z.array(z.enum(noticeTypes)).min(1).max(noticeTypes.length),
})
export type WebhookSetting = z.infer<typeof webhook>

const named = (items: readonly { name: string }[]): boolean => new Set(items.map(({ name }) => name)).size === items.length

export const webhooks = setting(
  z.array(webhook).max(10).refine(named, 'must not contain a name twice'),
  'Addresses that get signed notices of the scope, by Standard Webhooks. See docs/webhooks.md.',
  [
    {
      name: 'ops',
      url: 'https://hooks.example.com/reflex',
      secret: 'REFLEX_WEBHOOK_OPS',
      on: ['event.dead_lettered', 'approval.requested'],
    },
  ],
)
