import type { LogEntry } from '../src/protocol/log-entry.ts'
import type { Bench, Figure } from './figure.ts'
import { median } from './samples.ts'

const SCOPE = 'bench/turns'
const WARM_UP = 10

export const turnOverhead: Figure = {
  name: 'turn',
  what: "a turn's own time, beside the model's",
  unit: 'ms',
  target: { at_most: 5 },
  async measure(bench) {
    const { reflex, quick, progress } = bench
    progress('turns with the offline model')
    await reflex.configure(SCOPE, { instructions: 'You answer in one sentence.' })
    for (let turn = 0; turn < (quick ? 50 : 200); turn += 1) {
      const [event] = await reflex.outcome(
        SCOPE,
        JSON.stringify({ type: 'ws.message', connection_id: 'bench', content: `message ${turn}` }),
      )
      if (event?.status !== 'completed') throw new Error(`a turn did not complete its event: ${JSON.stringify(event)}`)
    }
    const overheads = overheadsOf(await wholeLog(bench)).slice(WARM_UP)
    await reflex.quiet(SCOPE)
    return { ours: [median(overheads)], bare: [] }
  },
}

async function wholeLog({ reflex }: Bench): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let after: string | null = '0'; after !== null;) {
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
    if (entry.kind === 'model-called') model.set(entry.turn_id, (model.get(entry.turn_id) ?? 0) + (entry.duration_ms ?? 0))
    if (entry.kind === 'turn-ended' && model.has(entry.turn_id)) overheads.push((entry.duration_ms ?? 0) - (model.get(entry.turn_id) ?? 0))
  }
  return overheads
}
