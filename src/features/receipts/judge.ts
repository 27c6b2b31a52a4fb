import { buildRegistry } from '../../agent/registry.ts'
import { prompted } from '../../agent/prompted.ts'
import type { AgentRegistry } from '../../agent/define-agent.ts'
import { unboundedComputing } from '../../base/computing.ts'
import type { Sandbox } from '../../reflexes/sandbox.ts'
import { plainMask } from '../../traces/redact.ts'
import { asRecorded } from '../replay/given.ts'
import { decideAgain } from '../replay/replay.ts'
import { Comparison, Unrecorded } from '../replay/report.ts'
import type { Divergence } from '../replay/contract/replay.ts'
import { cleanerOf, Source } from '../replay/source.ts'
import type { Checked, CheckedScope, Standing } from './verify.ts'

/** A decision of the trace. `proved`: signed, and decided again to the same. */
export type DecidedAgain = {
  scope: string
  seq: number | null
  kind: string
  verdict: 'proved' | 'differs' | 'signed' | 'unsigned'
  why: string | null
}
export type Judgement = { decisions: DecidedAgain[]; divergences: Divergence[]; missing: string[] }

type Compared = { span_id: string; seq?: number }

/** Notes each decision that is compared, with its entry. */
class Noted extends Comparison {
  readonly notes: { at: Compared; kind: string; verdict: 'proved' | 'differs' | 'signed'; why: string | null }[] = []

  override compare(...[at, kind, pair]: Parameters<Comparison['compare']>): boolean {
    const same = super.compare(at, kind, pair)
    this.notes.push({ at, kind, verdict: same ? 'proved' : 'differs', why: null })
    return same
  }

  override same(...[at, kind]: Parameters<Comparison['same']>): void {
    super.same(at, kind)
    this.notes.push({ at, kind, verdict: 'proved', why: null })
  }

  override diverge(...[at, kind, difference]: Parameters<Comparison['diverge']>): void {
    super.diverge(at, kind, difference)
    this.notes.push({ at, kind, verdict: 'differs', why: null })
  }

  override cannot(...[at, kind, reason]: Parameters<Comparison['cannot']>): void {
    super.cannot(at, kind, reason)
    this.notes.push({ at, kind, verdict: 'signed', why: reason })
  }
}

/** Makes the decisions of a file again, and compares them with what its entries say. */
export async function judge({ scopes }: Checked, sandbox: Sandbox): Promise<Judgement> {
  const judged: Judgement = { decisions: [], divergences: [], missing: [] }
  for (const scope of scopes) {
    const comparison = new Noted()
    const source = new Source(scope.recording)
    const agents = agentsOf(scope)
    const host = { agents, computing: unboundedComputing(), sandbox: () => sandbox, cleaner: cleanerOf((value) => value, plainMask) }
    await decideAgain({ source, host, given: asRecorded(source), comparison })
    judged.decisions.push(...comparison.notes.map((note) => decisionOf(note, scope)))
    judged.divergences.push(...comparison.divergences)
    judged.missing.push(...missingIn(scope))
  }
  return judged
}

function decisionOf({ at, kind, verdict, why }: Noted['notes'][number], { scope, standing }: CheckedScope): DecidedAgain {
  const place = at.seq === undefined ? undefined : standing.get(at.seq)
  const left = WHY[place ?? 'signed']
  if (place === 'unsigned') return { scope, seq: at.seq ?? null, kind, verdict: 'unsigned', why: left }
  if (verdict === 'differs' && left !== null) return { scope, seq: at.seq ?? null, kind, verdict: 'signed', why: left }
  return { scope, seq: at.seq ?? null, kind, verdict, why: verdict === 'signed' ? (left ?? why) : why }
}

const WHY: Readonly<Record<Standing, string | null>> = {
  signed: null,
  partly: 'its context quotes events of other traces, and only its hash is in the file',
  hash: 'a newer mask hides a part of the entry, and only its hash is in the file',
  unsigned: 'no signed head covers the entry',
}

/** Says in sentences what the file lacks of the trace. */
function missingIn({ scope, begins, standing, recording }: CheckedScope): string[] {
  const { entries, programs, complete } = recording
  const events = new Set(recording.events.map(({ event }) => event.id))
  const unsigned = [...standing.values()].filter((one) => one === 'unsigned').length
  const lacking = entries.filter(({ kind, event_ids: [id = ''] }) => kind === 'event-accepted' && !events.has(id)).length
  const codes = new Set(entries.flatMap((entry) => ('hash' in entry && typeof entry.hash === 'string' ? [entry.hash] : [])))
  const sealed = [...codes].filter((hash) => !(hash in programs)).length
  return [
    ...(complete ? [] : [`${scope}: the trace was still running, or a part of its log could not be read.`]),
    ...(begins === null ? [] : [`${scope}: the chain begins at the entry ${begins}; older entries of the log are not in it.`]),
    ...(unsigned === 0 ? [] : [`${scope}: ${unsigned} entries are covered by no signed head.`]),
    ...(lacking === 0 ? [] : [`${scope}: ${lacking} accepted events are not in the file.`]),
    ...(sealed === 0 ? [] : [`${scope}: the code of ${sealed} reflexes is not in the file: it is sealed or gone.`]),
  ]
}

/** The built-in agent, and a stand-in for others, whose code only their deployment has. */
function agentsOf({ recording }: CheckedScope): AgentRegistry {
  const registry = buildRegistry([])
  const { name } = recording.agent
  if (name === prompted.name) return registry
  const absent = () => {
    throw new Unrecorded(`the code of the agent ${name} is not in the file`)
  }
  // With a name of its own, no turn is made again with it.
  const agent = { ...prompted, name: `${name}, whose code is not in the file`, filters: [absent], tools: {}, trigger: absent }
  return { ...registry, agentOf: (_scope, asked) => (asked === prompted.name ? prompted : agent) }
}
