import { estimateTokenCount } from 'tokenx'
import { z } from 'zod'
import { quoteHider } from '../../base/secrets.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { DecisionContext } from '../../core/decision-context.ts'
import type { Event } from '../../core/event.ts'
import { maskedTexts, plainMask, redactor } from '../../traces/redact.ts'

const exchange = z.object({ prompt: z.string(), reply: z.string() })
type Exchange = z.infer<typeof exchange>
const kept = z.array(exchange)

/** The key of the scratch, which is in the log of each turn and which replays read. */
export const MEMORY_KEY = 'memory'
/** Shorter values occur in other texts by chance. */
const SHORTEST_QUOTE = 4
const SIZE = { max_events: 20, max_chars: 4000 }

type Setting = NonNullable<Settings['memory']>

/** The past turns that a prompt shows: the newest within the limits, oldest first. */
export function remembered(scratch: Readonly<Record<string, unknown>>, setting: Setting | undefined): Exchange[] {
  if (!setting) return []
  return within(setting, kept.safeParse(scratch[MEMORY_KEY]).data ?? [])
}

/**
 * Adds a turn to the scratch. Redacted fields, and what the reply quotes of them, are masked:
 * later prompts belong to other traces, whose masks do not know them.
 */
export function remember(context: DecisionContext, reply: string, { memory, redact }: Pick<Settings, 'memory' | 'redact'>): void {
  if (!memory) return
  const clean = redactor(redact, plainMask)
  const events = context.events.map((event) => clean(event) as Event)
  const quotes = quoteHider(
    context.events.flatMap((event, index) => maskedTexts(event, events[index])),
    SHORTEST_QUOTE,
    plainMask,
  )
  const prompt = new DecisionContext({ scope: context.scope, events }).summarize(SIZE)
  context.scratch[MEMORY_KEY] = within(memory, [...remembered(context.scratch, memory), { prompt, reply: quotes.text(reply) }])
}

function within({ turns, tokens }: Setting, all: readonly Exchange[]): Exchange[] {
  let left = tokens
  const newest = all.slice(-turns).toReversed()
  const over = newest.findIndex(({ prompt, reply }) => (left -= estimateTokenCount(prompt) + estimateTokenCount(reply)) < 0)
  return (over === -1 ? newest : newest.slice(0, over)).toReversed()
}
