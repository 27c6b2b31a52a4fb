import type { LogEntry } from '../../src/contract/log-entry.ts'
import { deployJson } from '../../tests/unit/skills/deploy-manifest.ts'
import type { ReflexClient } from '../clients.ts'
import { median, type Bench, type Figure, type Side } from '../figure.ts'

const SCOPE = 'bench/turns'
const WARM_UP = 10

export const turnOverhead: Figure = {
  name: 'turn',
  what: "a turn's own time, beside its model's",
  unit: 'ms',
  target: { at_most: 5 },
  ours: async (reflex, bench) => turns(reflex, bench),
}

/** The model gets a bulletin of skills, and its answer is searched for proposals. */
export const turnWithSkills: Figure = {
  ...turnOverhead,
  name: 'turn-skills',
  what: 'the same with 50 active skills: bulletin and protocol',
  async ours(reflex, bench) {
    bench.progress('registering skills')
    for (let number = 0; number < 50; number += 1) {
      await reflex.activateSkill({ ...deployJson, id: `message.skill${number}`, compat: {}, activation })
    }
    const side = turns(reflex, bench)
    return {
      async measure() {
        const overhead = await side.measure()
        const built = (await logAfter(reflex, 0)).some(
          (entry) => entry.kind === 'bulletin-built' && JSON.stringify(entry['cards']) !== '[]',
        )
        if (!built) throw new Error('no turn got a bulletin')
        return overhead
      },
    }
  },
}
const activation = { keywords_any: ['message'], score_weights: { keyword_hit: 1 }, tau: 1 }

function turns(reflex: ReflexClient, { count }: Bench): Side {
  return {
    async measure() {
      const from = (await reflex.state(SCOPE)).last_seq
      await reflex.configure(SCOPE, { instructions: 'You answer in one sentence.' })
      for (let turn = 0; turn < count(100) + WARM_UP; turn += 1) {
        const message = { type: 'ws.message', connection_id: 'bench', content: `message ${turn}` }
        const [event] = await reflex.outcome(SCOPE, JSON.stringify(message))
        if (event?.status !== 'completed') throw new Error(`a turn did not complete its event: ${JSON.stringify(event)}`)
      }
      const overheads = overheadsOf(await logAfter(reflex, from)).slice(WARM_UP)
      await reflex.quiet(SCOPE)
      return median(overheads)
    },
  }
}

async function logAfter(reflex: ReflexClient, from: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let after: string | null = String(from); after !== null;) {
    const page = await reflex.log(SCOPE, Number(after))
    entries.push(...page.items)
    after = page.next_cursor
  }
  return entries
}

/** The time of each turn that ended, less the time of its model calls. */
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
