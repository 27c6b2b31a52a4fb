import { createHash } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Env } from '../env.ts'
import { deliveryOf, isAuthenticated, isAutomatic, type ParsedMail } from './mail.ts'

const MOST_BYTES = 10_000_000
/** The hooks of verified and of other mails, which have one secret. */
const HOOKS = { verified: 'email', unverified: 'email-unverified' } as const

type Handlers = { fetch: (request: Request, env: Env, context: ExecutionContext) => Response | Promise<Response> }
/** `parse`: such as `PostalMime.parse`. */
type MailOptions = { handlers: Handlers; parse: (raw: ReadableStream<Uint8Array>) => Promise<ParsedMail> }
type Mail = Pick<ForwardableEmailMessage, 'from' | 'to' | 'raw' | 'rawSize' | 'setReject'>

/**
 * The handler of Cloudflare Email Routing: a mail becomes a delivery to a hook of the deployment,
 * another one where the receiving server did not find that it is from its sender.
 */
export const mailHandler =
  ({ handlers, parse }: MailOptions) =>
  async (message: Mail, env: Env, context: ExecutionContext): Promise<void> => {
    if (message.rawSize > MOST_BYTES) return message.setReject(`The mail is larger than ${MOST_BYTES / 1_000_000} MB.`)
    const mail = await parse(message.raw)
    if (isAutomatic(mail, message.from)) return
    const delivery = deliveryOf(mail, message.to)
    if (!delivery) return message.setReject('The mail has no sender.')
    const secret = env.REFLEX_HOOK_EMAIL
    if (!secret) throw new Error('no mail is taken: the deployment has no secret REFLEX_HOOK_EMAIL')
    const body = JSON.stringify(delivery)
    // The same mail that comes again is a duplicate.
    const id = createHash('sha256')
      .update(delivery.message_id === '' ? body : `${delivery.from} ${delivery.message_id}`)
      .digest('hex')
    const at = new Date()
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, at, body),
    }
    const hook = isAuthenticated(mail) ? HOOKS.verified : HOOKS.unverified
    const request = new Request(`https://email.invalid/v1/hooks/${hook}`, { method: 'POST', headers, body })
    const response = await handlers.fetch(request, env, context)
    const text = await response.text()
    if (!response.ok) throw new Error(`the hook ${hook} answered ${response.status}: ${text.slice(0, 500)}`)
  }
