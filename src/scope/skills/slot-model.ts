import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Env } from '../../env.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { SessionPorts } from '../../skills/session/ports.ts'
import { askParser } from '../../skills/model/ask-parser.ts'
import { modelName } from '../../models/resolve-model.ts'
import { countedModel, type CountedParts } from '../turns/metered-model.ts'
import { withDeadline } from '../../base/deadline.ts'

/** Time limit, since the proposer waits. After it, the slot becomes a question. */
const TIMEOUT_MS = 10_000

/** Answers pinned parsers with the turn's or the scope's model, in the same budget and log. */
export function slotModel(
  parts: CountedParts & { env: Env },
  { head, model, signal }: { head: EntryHead; model: LanguageModelV4 | undefined; signal: AbortSignal | undefined },
): SessionPorts['ask'] {
  const name = modelName(parts.env)
  return (request, stopped) => {
    const both = [signal, stopped].filter((one) => one !== undefined)
    return withDeadline(
      (within) => {
        const asked = model ?? countedModel(parts, { turn_id: null, head, signal: within })
        return askParser({ model: asked, name, signal: within }, request)
      },
      { ...(both.length > 0 && { signal: AbortSignal.any(both) }), timeout_ms: TIMEOUT_MS, what: `the parser's model` },
    )
  }
}
