import { senderOf } from '../../../contract/sender.ts'
import type { EditedInputs } from '../../../contract/approval.ts'
import { teacher as teacherShape } from '../../../contract/certificate.ts'
import type { LogEntry, EntryOf } from '../../../contract/log-entry.ts'
import type { RangeRecording } from '../../../contract/scope-api.ts'
import type { Event } from '../../../core/event.ts'
import { heldBy, ownersOf, ownFields } from '../../../evidence/attribution.ts'
import type { Basis } from '../../replay/recording.ts'
import { placesIn } from '../../../traces/ranges.ts'
import type { Episode, EpisodeAct, EpisodePlace } from '../episode.ts'
import type { ContextsOf, EpisodeEvent } from './contexts.ts'
import { actsOfAction, textIn, type EpisodeDecision, type SkillFields } from './decided.ts'
import { People, type Correction } from './people.ts'
import { withoutWords } from '../reflexes/classes.ts'
import { EpisodeTurns } from './turns.ts'
import type { Json } from '../../../base/json.ts'

/**
 * Returns the acts that a turn on several events decided on. Words beside other acts are about all
 * of the events, so they are no decision, unless somebody hears them.
 */
export function decisionOf(acts: readonly EpisodeAct[], events: readonly Event[]): readonly EpisodeAct[] {
  return events.some(({ meta }) => meta.heard === true) ? acts : withoutWords(acts)
}

/**
 * The acts of a turn on several events, for each of them: an act belongs to the one event that
 * holds the arguments by which the events differ. Null if there is no such event.
 */
function attributed(acts: readonly EpisodeAct[], events: readonly Event[]): EpisodeAct[][] | null {
  const found: EpisodeAct[][] = events.map(() => [])
  if (acts.length === 0) return found
  if (events.length === 1) return [[...acts]]
  const held = heldBy(events)
  for (const act of acts) {
    const [owner, ...others] = ownersOf(act.input, held)
    if (owner === undefined || others.length > 0) return null
    found[owner]?.push(act)
  }
  return found
}

export type LogPage = Pick<RangeRecording, 'entries' | 'events' | 'parts' | 'agent' | 'settings'>
export type Skipped = { reason: string; count: number }

/** The most decisions whose approval may follow, and the events that they are about. */
const MOST_ASKED = 1000

/**
 * Makes episodes of the log of a scope, page by page. Keeps what later pages need: turns and events
 * that are open, the context, and the counts of the last ten minutes.
 */
export class EpisodeReader {
  readonly #contexts: ContextsOf
  readonly #turns = new EpisodeTurns()
  readonly #people = new People()
  readonly #bases = new Map<string, Basis>()
  readonly #asked = new Map<string, Episode>()
  #teacher: Episode['teacher'] | null = null
  /** The basis of entries that name none. */
  #now: Basis | null = null
  #last = 0

  constructor(contexts: ContextsOf) {
    this.#contexts = contexts
  }

  get lead(): number {
    return this.#contexts.lead
  }

  /** Judgements of decisions that are not among those read, since the last call. */
  takeCorrections(): Correction[] {
    return this.#people.takeApart()
  }

  receive({ events, parts, agent, settings }: LogPage): void {
    this.#now = { agent, deployment: null, settings }
    this.#contexts.receive(events)
    for (const [hash, part] of Object.entries(parts)) if (isBasis(part)) this.#bases.set(hash, part)
  }

  /** The episodes that end with this entry. `skip` gets the reason why a decision gives none. */
  feed(entry: LogEntry, skip: (reason: string) => void): Episode[] {
    if (entry.seq !== this.#last + 1 && this.#last > 0) this.#contexts.lost(entry)
    this.#last = entry.seq
    this.#observe(entry)
    const basis = this.#basisOf(entry.kind === 'event-accepted' ? entry.basis : undefined)
    this.#contexts.feed(entry, { claimed: basis?.settings.consumer === 'pull', agent: basis?.agent.name ?? '' })
    const found = this.#turns.feed(entry).flatMap((decided) => this.#episodes(decided, skip))
    this.#people.know(found)
    if (entry.kind === 'event-ended') {
      this.#byReflex(entry)
      this.#contexts.forget(entry.event_ids)
    }
    const judged = this.#people.feed(entry)
    const approved = (entry.kind as string) === 'approval-decided' ? this.#approved(entry as SkillFields, skip) : []
    return [...found, ...judged, ...approved]
  }

  /** The decision of a reflex teaches nothing until a person has judged it. */
  #byReflex(entry: EntryOf<'event-ended'>): void {
    const fired = this.#people.decidedBy(entry)
    const perceived = fired && this.#contexts.of(entry.event_ids[0] ?? '')
    if (!fired || !perceived?.saw) return
    const { event, saw } = perceived
    const head = { trace_id: entry.trace_id, at: Date.parse(entry.at), log_seq: entry.seq, basis: undefined, agent: '' }
    const usage = { model_calls: 0, tokens: 0, cost_usd: 0, duration_ms: 0 }
    const decided = { ...head, usage, by: 'model' as const, models: [], outcome: 'ok' as const }
    this.#people.know([this.#episode(decided, { event, saw, acts: actsOfAction(fired.action) }, 1)])
  }

  #observe(entry: LogEntry): void {
    if ((entry.kind as string) !== 'teacher-changed') return
    const parsed = teacherShape.safeParse((entry as { teacher?: unknown }).teacher)
    this.#teacher = parsed.success ? parsed.data : null
  }

  #basisOf(hash: string | undefined): Basis | null {
    return (hash === undefined ? undefined : this.#bases.get(hash)) ?? this.#now
  }

  #episodes(decided: EpisodeDecision, skip: (reason: string) => void): Episode[] {
    const events = this.#eventsOf(decided)
    const reason = decided.unusable ?? events.find(({ unknown }) => unknown !== null)?.unknown ?? null
    if (reason !== null || events.length === 0) {
      skip(reason ?? 'its events are not kept, or were perceived before what is kept or read')
      return []
    }
    const seen = events.map(({ event }) => event)
    const done = decided.acts.map(({ act, sent }) => this.#whole(act, sent))
    const acts = attributed(seen.length > 1 ? decisionOf(done, seen) : done, seen)
    if (acts === null) {
      skip('a turn on several events did something that belongs to none of them alone')
      return []
    }
    const episodes = events.flatMap(({ event, saw }, index): Episode[] =>
      saw ? [this.#episode(decided, { event, saw, acts: acts[index] ?? [] }, events.length)] : [],
    )
    this.#remember(decided, episodes)
    return episodes
  }

  #eventsOf({ ids, places }: EpisodeDecision): EpisodeEvent[] {
    const found = places.length > 0 ? placesIn([...places]).map((seq) => this.#contexts.at(seq)) : ids.map((id) => this.#contexts.of(id))
    return found.some((one) => one === undefined) ? [] : found.filter((one) => one !== undefined)
  }

  /** Events that a turn sent have the content in the inbox. */
  #whole(act: EpisodeAct, sent: string | undefined): EpisodeAct {
    const event = sent === undefined ? undefined : this.#contexts.eventOf(sent)
    if (!event) return act
    const { type: _type, source: _source, ...input } = ownFields(event)
    return { ...act, input }
  }

  #episode(decided: Ended, { event, saw, acts }: { event: Event; saw: Episode['saw']; acts: EpisodeAct[] }, events: number): Episode {
    const basis = this.#basisOf(decided.basis)
    const { usage, by, models, outcome, left } = decided
    const place = placeOf(basis, decided.agent)
    const text = textOf([event])
    const labels = [...(basis?.settings.goal_labels ?? [])]
    const teacher = this.#teacher && by === 'model' ? this.#teacher : unnamed(by, { models, agent_version: place.agent_version })
    return {
      id: event.id,
      at: decided.at,
      trace_id: decided.trace_id,
      log_seq: decided.log_seq,
      place,
      teacher,
      source: senderOf(event),
      ...(event.meta.role && { role: event.meta.role }),
      saw,
      goal: { text, labels },
      ...(decided.blackboard && { blackboard: decided.blackboard }),
      acts,
      usage: events === 1 ? usage : shareOf(usage, events),
      outcome,
      ...(left !== undefined && { left }),
    }
  }

  #remember({ approvals }: EpisodeDecision, [episode]: readonly Episode[]): void {
    for (const id of episode ? approvals : []) {
      if (episode) this.#asked.set(id, episode)
      const [oldest] = this.#asked.keys()
      if (this.#asked.size > MOST_ASKED && oldest !== undefined) this.#asked.delete(oldest)
    }
  }

  /** A person has decided: what was asked for is right, or doing nothing would have been. */
  #approved(entry: SkillFields, skip: (reason: string) => void): Episode[] {
    const status = textIn(entry, 'status')
    if (status !== 'approved' && status !== 'rejected') return []
    const approval_id = textIn(entry, 'approval_id')
    const asked = this.#asked.get(approval_id)
    this.#asked.delete(approval_id)
    if (!asked && ('payment' in entry || 'anchors' in entry || 'origins' in entry)) return []
    if (!asked) {
      skip('a person decided on what a turn had asked for that is not kept, or was read before')
      return []
    }
    const { seq, at } = entry as LogEntry
    const is_right = status === 'approved'
    const { agent_version } = asked.place
    return [
      {
        ...asked,
        at: Date.parse(at),
        log_seq: seq,
        teacher: unnamed('person', { models: [], agent_version }),
        usage: shareOf(asked.usage, Infinity),
        acts: is_right ? asked.acts.map((act) => asEdited(act, entry)) : [],
        outcome: is_right ? 'ok' : 'corrected',
      },
    ]
  }
}

/** The act with the inputs that the person changed: those are the right ones. */
function asEdited(act: EpisodeAct, entry: SkillFields): EpisodeAct {
  const edits = entry['edits'] as EditedInputs | undefined
  if (!edits || !('name' in act) || act.name !== textIn(entry, 'skill_id') || !('input' in act)) return act
  return { ...act, input: { ...act.input, ...Object.fromEntries(Object.entries(edits).map(([name, { to }]) => [name, to as Json])) } }
}

type Ended = Pick<
  EpisodeDecision,
  'trace_id' | 'at' | 'log_seq' | 'usage' | 'outcome' | 'left' | 'by' | 'agent' | 'basis' | 'models' | 'blackboard'
>

const isBasis = (part: unknown): part is Basis =>
  typeof part === 'object' && part !== null && 'settings' in part && 'agent' in part && 'deployment' in part

export function placeOf(basis: Basis | null, agent: string): EpisodePlace {
  const { project, env, toolset, repo } = basis?.settings ?? {}
  return {
    agent: agent === '' ? (basis?.agent.name ?? '') : agent,
    agent_version: basis?.agent.version ?? '',
    ...(project !== undefined && { project }),
    ...(env !== undefined && { env }),
    ...(toolset !== undefined && { toolset }),
    ...(repo !== undefined && { repo }),
  }
}

/** A teacher of whom the log says no more. */
const unnamed = (
  by: Episode['teacher']['by'],
  { models, agent_version }: { models: readonly string[]; agent_version: string },
): Episode['teacher'] => ({
  by,
  agent_version,
  model: models.length === 0 ? 'none' : models.join(' + '),
  prompt_hash: '',
  tools_hash: '',
  settings_revision: 0,
})

const shareOf = ({ model_calls, tokens, cost_usd, duration_ms }: Episode['usage'], parts: number): Episode['usage'] => ({
  model_calls: model_calls / parts,
  tokens: tokens / parts,
  cost_usd: cost_usd / parts,
  duration_ms: duration_ms / parts,
})

/** The texts of events, for the goal of a turn. */
export function textOf(events: readonly Event[]): string {
  const said = events.flatMap((event) => [(event as { content?: unknown }).content, (event as { text?: unknown }).text])
  return said.filter((one) => typeof one === 'string').join('\n')
}
