import type { TracedAct, Trace } from '../../../../src/features/learning/skills/trace.ts'

export const call = (name: string, input: TracedAct['input'] = {}, fields: Partial<TracedAct> = {}): TracedAct => ({
  kind: 'tool',
  name,
  input,
  output: {},
  ok: true,
  cost_usd: 0.001,
  duration_ms: 100,
  ...fields,
})

export const run = (name: string, input: TracedAct['input'] = {}): TracedAct => call(name, input, { kind: 'skill' })

/** A turn that cost 0.1 USD besides its tools and took 5 s. */
export const trace = (at: number, acts: TracedAct[], fields: Partial<Trace> = {}): Trace => ({
  trace_id: `trace-${at}`,
  at,
  place: { agent: 'deploy', project: 'acme/payments' },
  acts,
  usage: { model_calls: 4, tokens: 4000, cost_usd: 0.1, duration_ms: 5000 },
  outcome: 'ok',
  ...fields,
})

export const times = <Value>(count: number, build: (index: number) => Value): Value[] =>
  Array.from({ length: count }, (_, index) => build(index))
