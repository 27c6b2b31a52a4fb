import type { LogEntry } from '../src/contract/log-entry.ts'
import type { Bench, Figure } from './figure.ts'
import { deployJson } from '../tests/unit/skills/deploy-manifest.ts'
import { median, type Samples } from './samples.ts'

const SCOPE = 'bench/turns'
const WARM_UP = 10

const figure = { unit: 'ms', target: { at_most: 5 } } as const

export const turnOverhead: Figure = {
  ...figure,
  name: 'turn',
  what: "a turn's own time, beside the model's",
  measure: (bench) => measure(bench),
}

/** The model is told of skills, and its answer is looked through for proposals. */
export const turnWithSkills: Figure = {
  ...figure,
  name: 'turn-skills',
  what: 'the same with 50 active skills: bulletin and protocol',
  async measure(bench) {
    bench.progress('registering skills')
    for (let number = 0; number < 50; number += 1) {
      await bench.reflex.activateSkill({ ...deployJson, id: `message.skill${number}`, compat: {}, activation })
    }
    const measured = await measure(bench)
    const told = (await logAfter(bench, 0)).some((entry) => entry.kind === 'bulletin-built' && JSON.stringify(entry['cards']) !== '[]')
    if (!told) throw new Error('no turn was told of any skill')
    return measured
  },
}
const activation = { keywords_any: ['message'], score_weights: { keyword_hit: 1 }, tau: 1 }

async function measure(bench: Bench): Promise<Samples> {
  const { reflex, quick, progress } = bench
  progress('turns with the offline model')
  const from = (await reflex.state(SCOPE)).last_seq
  await reflex.configure(SCOPE, { instructions: 'You answer in one sentence.' })
  for (let turn = 0; turn < (quick ? 50 : 200); turn += 1) {
    const [event] = await reflex.outcome(SCOPE, JSON.stringify({ type: 'ws.message', connection_id: 'bench', content: `message ${turn}` }))
    if (event?.status !== 'completed') throw new Error(`a turn did not complete its event: ${JSON.stringify(event)}`)
  }
  const overheads = overheadsOf(await logAfter(bench, from)).slice(WARM_UP)
  await reflex.quiet(SCOPE)
  return { ours: [median(overheads)], bare: [] }
}

async function logAfter({ reflex }: Bench, from: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let after: string | null = String(from); after !== null;) {
    const page = await reflex.log(SCOPE, Number(after))
    entries.push(...page.items)
    after = page.next_cursor
  }
  return entries
}

/** Of each turn that ended: its time less that of its model calls. */
function overheadsOf(entries: readonly LogEntry[]): number[] {
  const model = new Map<string, number>()
  const overheads: number[] = []
  for (const entry of entries) {
    if (entry.kind === 'model-called' && entry.turn_id !== null)
      model.set(entry.turn_id, (model.get(entry.turn_id) ?? 0) + (entry.duration_ms ?? 0))
    if (entry.kind === 'turn-ended' && model.has(entry.turn_id)) overheads.push((entry.duration_ms ?? 0) - (model.get(entry.turn_id) ?? 0))
  }
  return overheads
}
