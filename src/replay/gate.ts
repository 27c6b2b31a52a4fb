import { isJsonFields, type Json, type JsonFields } from '../base/json.ts'
import type { GateDecision, GateRequest } from '../skills/gate/decision.ts'
import { decide } from '../skills/gate/gate.ts'
import { emptyBlackboard, type Blackboard, type Change } from '../skills/plan/blackboard.ts'
import type { Around } from './given.ts'
import { differences, Unrecorded } from './report.ts'
import type { SkillEntry, Source } from './source.ts'

type Logged = Omit<GateRequest, 'manifest' | 'blackboard' | 'recorded'>

/** Makes each decision of the gate again, from the request as it is logged. */
export function replayGate({ source, given, comparison }: Around): void {
  for (const entry of source.skillEntries('skill-decided')) {
    try {
      const recorded = entry['decision'] as GateDecision
      const request = { ...(entry['request'] as Logged), recorded: recorded.probes }
      const replayed = decide({
        ...request,
        manifest: given.manifest(String(entry['manifest_hash'])),
        blackboard: blackboardAt(entry, source),
      })
      if (isMasked(request.inputs) && differences(recorded, replayed).length > 0)
        comparison.cannot(entry, 'gate', 'the inputs hold redacted values, and the gate decides otherwise without them')
      else comparison.compare(entry, 'gate', { recorded, replayed })
    } catch (error) {
      if (!(error instanceof Unrecorded)) throw error
      comparison.cannot(entry, 'gate', error.message)
    }
  }
}

/** The blackboard of the decision's session: its seed, and the changes up to the revision. */
function blackboardAt({ seq, revision }: SkillEntry, source: Source): Blackboard {
  const seeded = source.skillEntries('blackboard-seeded').findLast((entry) => entry.seq < seq)
  if (!seeded) throw new Unrecorded('the seed of the blackboard is not in the recording')
  const blackboard = structuredClone({ ...emptyBlackboard(), ...(seeded['blackboard'] as Partial<Blackboard>) })
  const changes = source
    .skillEntries('blackboard-changed')
    .filter((entry) => entry.seq > seeded.seq && entry.seq < seq && Number(entry['revision']) <= Number(revision))
  for (const change of changes.flatMap((entry) => entry['changes'] as Change[])) apply(blackboard, change)
  return blackboard
}

function apply(blackboard: Blackboard, { path, change, after }: Change): void {
  const names = path.split('.')
  const last = names.pop() ?? ''
  let at: JsonFields = blackboard
  for (const name of names) {
    const inner: Json | undefined = Object.hasOwn(at, name) ? at[name] : undefined
    const fields: JsonFields = inner !== undefined && isJsonFields(inner) ? inner : {}
    at[name] = fields
    at = fields
  }
  if (change === 'removed') delete at[last]
  else at[last] = after
}

const isMasked = (value: unknown): boolean => /\[(?:secret|redacted)\]/.test(JSON.stringify(value ?? null))
