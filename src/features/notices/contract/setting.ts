import { z } from 'zod'
import { WEBHOOK_SECRET_PREFIX } from '../../../base/secrets.ts'
import { namedOnce, secretNamed, setting } from '../../../contract/setting.ts'

/** The types of notices that a scope reports to its webhooks. */
const noticeTypes = ['event.ended', 'event.dead_lettered', 'approval.requested', 'reflex.demoted', 'budget.spent', 'alert.raised'] as const
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
  secret: secretNamed(WEBHOOK_SECRET_PREFIX).meta({
    description: 'The name of the deployment secret that signs, whose value is `whsec_` and base64.',
  }),
  on: z.array(z.enum(noticeTypes)).min(1).max(noticeTypes.length),
})
export type WebhookSetting = z.infer<typeof webhook>

export const webhooks = setting(
  namedOnce(webhook, 10),
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
