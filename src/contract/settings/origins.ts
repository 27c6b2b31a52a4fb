import { z } from 'zod'
import { originModes } from '../origin.ts'
import { trustedSender } from '../principal.ts'
import { setting } from '../setting.ts'

const pattern = z.string().min(1).max(256)

export const trustedText = z.strictObject({
  in: pattern.meta({
    description: 'A type of events, or a tool whose outputs are meant. `*` stands for any characters. `model`: what stands nowhere.',
  }),
  what: z.array(z.string().min(1).max(64)).min(1).max(20).meta({
    description: 'Names of arguments, or formats: `email`, `uri`, `hostname`, `ip`, `phone`, `iban`. `link`: links within texts.',
  }),
  sender: pattern.optional().meta({ description: 'Only in events of these senders, as in `trusted_senders`. Unset: of all.' }),
  tools: z.array(pattern).min(1).max(20).optional().meta({ description: 'Only for calls of these tools. Unset: of all.' }),
})
export type TrustedText = z.infer<typeof trustedText>

/** The settings by which people and texts may say where an effect goes. */
export const originSettings = {
  origins: setting(
    z.enum(originModes),
    'What happens to a call whose destination, such as a recipient, is known from no trusted origin: it stands only within a longer text, or nowhere. ' +
      '`observe`: the log says so. `ask`: a person is asked. `refuse`: the call fails. See docs/security.md. Default: `REFLEX_ORIGINS` of the deployment, which is `observe` unless set.',
    'ask',
  ),
  trusted_senders: setting(
    z.array(trustedSender).max(100),
    'Senders whose events may name destinations: `key:ID`, the `sender` of a queue message, or the source of an event without one; `role:operator` and `role:admin`: keys that had this role when they sent the event. `*` stands for any characters. ' +
      'Those in `learning.trusted_sources` may, too. Default: `key:admin`.',
    ['key:admin', 'key:0123456789abcdef', 'role:operator'],
  ),
  plan_first: setting(
    z.boolean(),
    'True: the agent `prompted` first asks its model which tools the task needs, on the words of trusted senders alone. A person is asked about ' +
      'calls of other tools. One more model call a turn. Default: false.',
    true,
  ),
  trusted_text: setting(
    z.array(trustedText).max(50),
    'Pieces of texts that may name destinations, although strangers write the texts: the address in a line of a log, for a tool that blocks it.',
    [{ in: 'ssh.line', what: ['ip'], tools: ['block'] }],
  ),
}
