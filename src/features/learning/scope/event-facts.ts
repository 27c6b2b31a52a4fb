import type { Event } from '../../../core/event.ts'
import type { LogEntry, EntryOf, ReflexEntry } from '../../../contract/log-entry.ts'
import type { ReflexVersion } from '../../../contract/reflex.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import type { EventFacts, Judged, ReflexFacts } from '../contract/why.ts'

type FactsParts = Pick<Collaborators, 'recordings' | 'programs' | 'reflex_sync' | 'may_act' | 'log' | 'now'>
type Comparing = EntryOf<'reflex-compared' | 'reflex-audited'>
type Decided = { event: Event; by: string | null; ran: readonly ReflexEntry[] }
type Version = { id: string; version: number | null; found: ReflexVersion | undefined; absent: string | null }

/** Entries of the log that are searched for comparisons and audits. */
const MOST_SEARCHED = 5000
const MOST_JUDGED = 5

/** The facts of an event for each reflex of the chain. Null: the scope has no such event. */
export async function eventFacts(parts: FactsParts, event_id: string): Promise<EventFacts | null> {
  await parts.reflex_sync.ready()
  const found = parts.recordings.of(event_id)
  if (found === null) return null
  const { recording, ran } = found
  const { event } = recording.context as { event: Event }
  const acted = ran.find((entry) => entry.kind === 'reflex-fired' && entry.state === 'active')
  const outcome = recording.decision && (recording.decision.by === 'turn' ? 'the slow path' : 'a reflex')
  const by = acted ? `reflex ${nameOf(acted)}` : outcome
  const decided: Decided = { event, by, ran }
  const judged = Map.groupBy(comparisonsIn(parts), ({ reflex_id, version }) => `${reflex_id}@${version}`)
  return {
    event_id,
    event_type: event.type,
    decided: by ?? 'nothing yet, or it is no longer known',
    context: recording.source,
    saw: recording.context,
    reflexes: versionsOf(parts, ran).map((one) => factsOf(parts, one, decided, judged.get(nameOf(one)) ?? [])),
  }
}

const nameOf = ({ id, reflex_id = id ?? '', version }: { id?: string; reflex_id?: string; version: number | null }): string =>
  `${reflex_id}@${version}`

/** The versions of the chain, and the ones that ran on the event and have left it. */
function versionsOf({ programs }: FactsParts, ran: readonly ReflexEntry[]): Version[] {
  const all = new Map<string, Version>()
  const add = (one: Version): void => void (all.has(nameOf(one)) || all.set(nameOf(one), one))
  for (const { reference, acting, earlier, watching, absent } of programs.links) {
    const versions = [acting, earlier, ...watching].filter((one) => one != null)
    for (const found of versions) add({ id: found.id, version: found.version, found, absent: null })
    if (versions.length === 0) add({ id: reference.id, version: null, found: undefined, absent: absent?.detail ?? null })
  }
  for (const { reflex_id: id, version } of ran)
    if (version !== null) add({ id, version, found: programs.find({ id, version }), absent: 'it has left the chain since' })
  return [...all.values()]
}

function factsOf(parts: FactsParts, { id, version, found, absent }: Version, decided: Decided, judged: readonly Comparing[]): ReflexFacts {
  const { event, ran } = decided
  const own = ran.filter((entry) => entry.reflex_id === id && entry.version === version)
  const fired = own.find((entry) => entry.kind === 'reflex-fired')
  const passed = own.filter(isPassed).find(({ context_hash }) => context_hash !== null)
  // A link that is held back may name no version.
  const isOwn = (entry: Passed): boolean => entry.reflex_id === id && (entry.version ?? version) === version && entry.context_hash === null
  const held = ran.filter(isPassed).find(isOwn)
  const now = found ? parts.may_act.mayAct(found, { event_type: event.type, event, action: fired?.action ?? null }, parts.now()) : null
  const verdict = fired ? (fired.state === 'active' ? 'acted' : 'held') : passed ? 'left' : 'not_run'
  const shown = judged.toReversed().map(judgedOf)
  return {
    id,
    version,
    learned: found?.provenance.run !== undefined,
    verdict,
    reasons: [
      ...(verdict === 'held' ? [held?.error ? `It did not act: ${held.error}.` : 'It was in shadow mode.'] : []),
      ...(verdict === 'left' && passed?.reason !== 'null' ? [`It failed: ${passed?.error ?? passed?.reason}.`] : []),
      ...(verdict === 'not_run' ? [notRunWords(decided, { held, absent })] : []),
      ...(now !== null && now !== held?.error ? [`Today it would not act: ${now}.`] : []),
      ...(found?.state === 'shadow' && verdict !== 'held' ? ['It is in shadow mode.'] : []),
    ],
    judged: shown.slice(0, MOST_JUDGED),
    disagreed: shown.find(({ agreed }) => agreed === false) ?? null,
  }
}

type Passed = EntryOf<'reflex-passed'>
const isPassed = (entry: ReflexEntry): entry is Passed => entry.kind === 'reflex-passed'
type NotRun = { held: Passed | undefined; absent: string | null }

function notRunWords({ by, ran }: Decided, { held, absent }: NotRun): string {
  if (held) return `It did not run: ${held.error ?? HELD[held.reason] ?? held.reason}.`
  if (absent !== null) return `It did not run: ${absent}.`
  if (by?.startsWith('reflex ')) return `It did not run: ${by} had decided.`
  return ran.length > 0
    ? 'It did not run: it was not in the chain then.'
    : 'No entry says that it ran: it was not in the chain, or the log no longer has it.'
}

const HELD: Readonly<Record<string, string>> = { cooldown: 'its cooldown had not passed', rate: 'it had reached its rate' }

function comparisonsIn({ log }: FactsParts): Comparing[] {
  const isComparing = (text: string): boolean => text.includes('"kind":"reflex-compared"') || text.includes('"kind":"reflex-audited"')
  const { found } = log.find(isComparing, { after: Math.max(0, log.last - MOST_SEARCHED), limit: MOST_SEARCHED, contexts: false })
  return found
    .map(({ text }) => JSON.parse(text) as LogEntry)
    .filter((entry) => entry.kind === 'reflex-compared' || entry.kind === 'reflex-audited')
}

const judgedOf = (entry: Comparing): Judged => ({
  at: entry.at,
  event_id: entry.event_ids[0] ?? '',
  trace_id: entry.trace_id,
  how: entry.kind === 'reflex-audited' ? 'audited' : 'compared',
  by: (entry.kind === 'reflex-audited' ? entry.by : null) ?? 'the slow path',
  agreed: entry.agreed,
})
