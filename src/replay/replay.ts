import { equivalenceOf, type ReplayReport, type ReplaySide } from '../contract/reports/replay.ts'
import type { Usage } from '../contract/log-entry.ts'
import { replayChains } from './chain.ts'
import { replayAsked, replayMiddle } from './decisions.ts'
import { replayActions } from './lane.ts'
import { replayProofs, reportUnseen } from './sweep.ts'
import { asRecorded, type Around } from './given.ts'
import { replayTurns } from './turn.ts'
import type { Recording } from './recording.ts'
import { Comparison } from './report.ts'
import { Sessions } from './skills/sessions.ts'
import { Source, type ReplayHost } from './source.ts'

/**
 * Decides again from a recording, with the functions of the live path, and compares every decision
 * and output. Pure: it asks no model, calls no tool and writes nothing.
 */
export async function replay(recording: Recording, host: ReplayHost): Promise<ReplayReport> {
  const source = new Source(recording)
  const around = { source, host, given: asRecorded(source), comparison: new Comparison() }
  const { recorded, replayed } = await decideAgain(around)
  const { compared, changed, divergences, unknown } = around.comparison
  const equivalent = equivalenceOf({ changed, unknown: unknown.length })
  const { trace_id, complete } = recording
  return { trace_id, mode: 'pinned', complete, equivalent, compared, changed, divergences, unknown, recorded, replayed }
}

/** Makes all decisions of a recording again with what is given, and compares them. */
export async function decideAgain(around: Around): Promise<{ recorded: ReplaySide; replayed: ReplaySide }> {
  const sessions = new Sessions(around)
  const { computing } = around.host
  const chains = await computing.run(replayChains(around))
  chains.acted.push(...replayMiddle(around))
  await replayActions(around, chains, sessions)
  const spared = replayAsked(around, chains)
  const saved = await replayTurns(around, sessions)
  await sessions.replayRest()
  replayProofs(around)
  if (around.given.departures === null) reportUnseen(around)
  const recorded = recordedSide(around.source)
  const effects = recorded.effects - saved.effects
  const duration_ms = recorded.duration_ms - saved.duration_ms
  return { recorded, replayed: { effects, usage: less(recorded.usage, [...saved.calls, ...spared]), duration_ms } }
}

function recordedSide(source: Source): ReplaySide {
  const none = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
  const times = source.recording.entries.map(({ at }) => Date.parse(at))
  const duration_ms = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times)
  return {
    usage: summed(none, source.entriesOf('model-called', 'decision-made'), 1),
    effects: source.entriesOf('effect-ended').length,
    duration_ms,
  }
}

const less = (usage: Usage, calls: readonly Paid[]): Usage => summed(usage, calls, -1)

type Paid = { usage: Usage }

function summed(usage: Usage, calls: readonly Paid[], sign: 1 | -1): Usage {
  const sum = { ...usage }
  for (const { usage: one } of calls) {
    sum.input_tokens += sign * one.input_tokens
    sum.output_tokens += sign * one.output_tokens
    sum.model_calls += sign * one.model_calls
    sum.cost_usd = sum.cost_usd === null || one.cost_usd === null ? null : sum.cost_usd + sign * one.cost_usd
  }
  return sum
}
