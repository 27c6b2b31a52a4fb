import { generateText, type LanguageModel } from 'ai'
import { createReflex } from 'reflex-agents/wrap/node'

/** Asks a model once, and decides that trace again: as it was, and with another threshold. */
export async function askAndReplay(model: LanguageModel, storage: `local://${string}` = 'local://./.reflex') {
  const reflex = createReflex({ project: 'acme/payments', storage, otlp: process.env })
  const { text } = await generateText({ ...reflex.wrap({ model }), prompt: 'Refund order 7' })
  const { trace_id = '' } = reflex.log.entries().findLast(({ kind }) => kind === 'turn-ended') ?? {}
  const report = await reflex.replay(trace_id)
  const changed = await reflex.replay(trace_id, { mode: 'what_if', changes: { settings: { tau: 0.9 } } })
  await reflex.flush() // before the process ends: sends what waits for the collector
  reflex.close()
  return { text, report, changed }
}
