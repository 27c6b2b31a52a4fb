import { endOfAct, NO_BRANCH, REUSED, UNKNOWN_OUTPUT, type ActionEnding } from '../../agent/action-end.ts'
import { permit } from '../../agent/permit.ts'
import {
  parseAction,
  readsOutputs,
  toolCallOf,
  type Action,
  type ActionCall,
  type LaneWork,
  type SequenceAct,
} from '../../contract/action.ts'
import type { Event } from '../../core/event.ts'
import { actsOnPath, asksUnknown, needsOutput, type Outputs, resolveAct } from '../../reflexes/sequence.ts'
import type { Job } from '../jobs.ts'
import { reflexHead, under } from '../log/spans.ts'
import { childHead } from '../../traces/ids.ts'
import type { Sockets } from '../live/sockets.ts'
import type { Unit } from '../../kernel/unit.ts'
import { limits } from '../../base/limits.ts'
import { sha256 } from '../../base/json.ts'
import { kindOf, type DoneAct, type LaneAction } from './actions.ts'
import { callKeyOf } from './action-keys.ts'
import { actOwner } from '../effects/effect-journal.ts'
import { argumentsHash } from '../../tools/define-tool.ts'
import { eventOf, NOT_KEPT, performAct, type ActParts, type Performed } from './perform-act.ts'

export type SequenceParts = ActParts & {
  sockets: Pick<Sockets, 'reply'>
  /** The reason why the version may no longer act, or null. */
  obstacle: (payload: LaneAction) => string | null
}
type Sequence = Extract<LaneWork, { kind: 'sequence' }>

/** The owner of the journal rows of an act; of the one that is due unless `place` is given. */
export function ownerOf({ key, payload }: Job<LaneAction>, place = payload.done?.length ?? 0): string {
  return payload.work.kind === 'sequence' ? actOwner(key, place) : key
}

/**
 * Does the acts of a sequence in their order, each as if it were alone: with the outputs that it
 * uses it is parsed and permitted again, and its version must still be allowed to act. Each act
 * ends in a unit that writes its place and output into the job, so that after a crash the sequence
 * continues with the act that was due (G8). It stops at the first that fails, and where a person is
 * asked; a branch may be for a look-up before it that failed.
 */
export async function performSequence(work: Sequence, job: Job<LaneAction>, parts: SequenceParts, signal: AbortSignal): Promise<Performed> {
  const { unit, jobs, effects, action_keys } = parts
  for (;;) {
    const done = job.payload.done ?? []
    // A person was asked, perhaps before a death.
    if (done.at(-1)?.asks) break
    if (asksUnknown(work, outputsOf(done))) return { ...UNKNOWN_OUTPUT, withheld: true }
    const acts = actsOnPath(work, outputsOf(done))
    // The slow path continues from what was done.
    if (acts === null) return { ...NO_BRANCH, withheld: true }
    const act = acts[done.length]
    if (act === undefined) break
    const { ending, keep, call, write, follow } = await performDue(act, job, parts, signal)
    const isDone = ending.status === 'ok' || ending.status === 'reused'
    if (!isDone && !ending.failed_read) return told(ending, job)
    const ended = doneAct(act, ending, { work, done })
    const next = { ...job.payload, done: [...done, ended] }
    unit(
      (progress) => {
        ending.close?.(progress)
        write?.(progress)
        if (call) action_keys.keepCall(progress, call.of, call)
        if (keep) effects.journal.keepAct(progress, ownerOf(job), { action: keep, output: ended.output ?? null })
        jobs.advanced(progress, kindOf(job.payload.work), job.key, next)
      },
      { kind: 'action', id: job.key },
    )
    job.payload = next
    follow?.()
  }
  return job.payload.done?.every(({ status }) => status === 'reused') ? REUSED : { status: 'ok', error: null }
}

export const outputsOf = (done: readonly DoneAct[]): Outputs => done.map(({ output }) => output)

/**
 * A row of the jobs has room for so many outputs. A later act that uses another one fails, and no
 * branch is taken that asks about it.
 */
function doneAct({ action_type }: SequenceAct, ending: Performed, { work, done }: { work: Sequence; done: DoneAct[] }): DoneAct {
  const { output = null } = needsOutput(work, done.length) ? ending : {}
  const fits = output !== NOT_KEPT && JSON.stringify([...done, output]).length <= limits.sql_json_bytes
  const { answered, asks } = ending
  const how = answered === undefined ? { status: ending.status } : { status: 'reused' as const, answered }
  return { action_type, ...how, ...(fits && { output }), ...(asks && { asks }) }
}

/** The ending of the sequence, which names the act that failed. */
export function told<Ending extends ActionEnding>(ending: Ending, { payload }: Job<LaneAction>): Ending {
  if (payload.work.kind !== 'sequence') return ending
  const { work, done = [] } = payload
  const acts = actsOnPath(work, outputsOf(done))
  return acts === null ? ending : endOfAct(ending, done.length, acts.length)
}

type KeyedCall = ActionCall & { of: { reflex_id: string; key: string; place: number } }
/** `keep`: an act that is no call of a tool, for the journal. `call`: one under a key. */
type Done = { ending: Performed; keep?: Action; call?: KeyedCall; write?: (unit: Unit) => void; follow?: () => void }

async function performDue(act: SequenceAct, job: Job<LaneAction>, parts: SequenceParts, signal: AbortSignal): Promise<Done> {
  const { payload } = job
  const owner = ownerOf(job)
  const { journal } = parts.effects
  const last = journal.lastOf(owner)?.status
  const begun = last !== undefined || isRun(owner, parts)
  // An attempt before a death may have happened, although the act is refused now.
  const status = last === 'unknown' || last === 'started' ? 'unknown' : 'failed'
  const failed = (error: string): Done => ({ ending: { status, error, ...(!payload.done && !begun && { withheld: true as const }) } })
  const lacks = begun ? null : parts.obstacle(payload)
  if (lacks !== null) return failed(lacks)
  const resolved = resolveAct(act, outputsOf(payload.done ?? []))
  if (!resolved.ok) return failed(resolved.detail)
  const event = eventOf(payload, parts)
  const hash = isOfOutputs(act, payload) ? argumentsHash(resolved.action) : null
  const parsed = parseAction({ ...resolved.action, ...(await keyFor(resolved.action, payload, { event, hash })) })
  if (!parsed.ok) return failed(parsed.error)
  const { scope, agents, toolbox, memory, now } = parts
  const asked = { scope, agents, toolbox, event, version: { id: payload.reflex_id } }
  const permission = permit(parsed.action, { ...asked, scratch: memory.live.scratch, now: now() })
  if (!permission.ok) return failed(permission.detail)
  const answered = new Set((payload.done ?? []).flatMap((one) => one.answered ?? []))
  const { action } = resolved
  const kept = action.action_type === 'call_tool' ? undefined : journal.keptAct(parts.view.earlierTurns([payload.seq]), action, answered)
  if (kept) return { ending: { ...REUSED, output: kept.output, answered: kept.id } }
  if (!permission.lane) return { ...atOnce(parsed.action, payload, event, parts), keep: action }
  const { work } = permission
  if (work.kind === 'sequence') throw new Error('a sequence has no sequences')
  const key = keyOfCall(payload, hash)
  const sent = work.kind === 'event' ? { ...work, event: under(payload.head, work.event, parts.trace_marks.of(payload.head)) } : work
  const may_fail = payload.work.kind === 'sequence' && isBeforeBranches(payload.work, payload.done)
  const ending = await performAct(sent, { owner, key, payload, signal, answered, may_fail }, parts)
  if (ending.asks || ending.status === 'failed') return { ending }
  return work.kind === 'tool' ? { ending, ...keyedCall(action, payload) } : { ending, keep: action }
}

/** True if the act that is due is the last one before the branches. */
const isBeforeBranches = ({ acts, branches }: Sequence, done: readonly DoneAct[] = []): boolean =>
  branches !== undefined && done.length === acts.length - 1

const isRun = (cause: string, { database }: SequenceParts): boolean =>
  database.first('SELECT 1 AS one FROM skill_runs WHERE cause = ?', cause) !== undefined

function keyedCall(action: Action, { reflex_id, idempotence_key: key, done = [] }: LaneAction): { call?: KeyedCall } {
  const call = toolCallOf(action)
  return call && key !== null ? { call: { ...call, of: { reflex_id, key, place: done.length } } } : {}
}

/**
 * True for an act that uses outputs, or follows from them: with other outputs it is another one, as
 * after an earlier call was undone and is made again.
 */
const isOfOutputs = (act: SequenceAct, { work, done = [] }: LaneAction): boolean =>
  readsOutputs(act) || (work.kind === 'sequence' && done.length >= work.acts.length)

/** The key of a call under the key of its sequence. `hash`: of an act that is of outputs. */
function keyOfCall({ idempotence_key, done = [] }: LaneAction, hash: string | null): string | null {
  if (idempotence_key === null) return null
  const key = callKeyOf(idempotence_key, done.length)
  return hash === null ? key : `${key} ${hash}`
}

/** The id of an event that is sent is made from its key: each act of a sequence has its own. */
async function keyFor(
  { action_type }: Action,
  { idempotence_key, done = [] }: LaneAction,
  { event, hash }: { event: Event; hash: string | null },
): Promise<{ idempotence_key?: string }> {
  if (action_type !== 'emit_event') return {}
  const named = ['sequence', idempotence_key ?? event.id, done.length]
  return { idempotence_key: await sha256(JSON.stringify(hash === null ? named : [...named, hash])) }
}

/** An act that changes only this scope is done in the unit that ends it. */
function atOnce(action: Action, { reflex_id }: LaneAction, event: Event, { sockets, memory, log }: SequenceParts): Done {
  const ending = { status: 'ok' as const, error: null }
  const head = childHead(reflexHead(event, reflex_id))
  if (action.action_type === 'reply') {
    const content = log.clean(action.content) as string
    return {
      ending,
      write: (unit) => void unit.log({ ...head, kind: 'reply-sent', turn_id: null, reflex_id, content }),
      follow: () => sockets.reply({ turn_id: null, event_id: event.id, content }),
    }
  }
  if (action.action_type !== 'set_scratch') throw new Error(`the action ${action.action_type} is not done at once`)
  const write = (unit: Unit): void => {
    memory.setScratch(unit, action.key, action.value)
    const { key, value } = log.clean({ key: action.key, value: action.value }, head.trace_id) as { key: string; value: unknown }
    unit.log({ ...head, kind: 'scratch-set', key, value, reflex_id })
  }
  return { ending, write }
}
