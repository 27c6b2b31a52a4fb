import type { ReplayReport, ReplaySide } from '../contract/reports/replay.ts'
import { replayChains } from './chain.ts'
import type { Recording } from './recording.ts'
import { Comparison } from './report.ts'
import { Source, type ReplayHost } from './source.ts'

/**
 * Decides again from a recording, with the functions of the live path, and compares every decision
 * and output. Pure: it asks no model, calls no tool and writes nothing.
 */
export async function replay(recording: Recording, host: ReplayHost): Promise<ReplayReport> {
  const source = new Source(recording)
  const comparison = new Comparison()
  replayChains(source, host, comparison)
  const { compared, divergences, unknown } = comparison
  const recorded = recordedSide(source)
  return {
    trace_id: recording.trace_id,
    mode: 'pinned',
    equivalent: divergences.length === 0,
    compared,
    divergences,
    unknown,
    recorded,
    replayed: recorded,
  }
}

function recordedSide(source: Source): ReplaySide {
  const usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0 as number | null, model_calls: 0 }
  for (const { usage: one } of source.entriesOf('model-called')) {
    usage.input_tokens += one.input_tokens
    usage.output_tokens += one.output_tokens
    usage.model_calls += one.model_calls
    usage.cost_usd = usage.cost_usd === null || one.cost_usd === null ? null : usage.cost_usd + one.cost_usd
  }
  const times = source.recording.entries.map(({ at }) => Date.parse(at))
  const duration_ms = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times)
  return { usage, effects: source.entriesOf('effect-started').length, duration_ms }
}
