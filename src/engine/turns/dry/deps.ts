import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { AgentDeps } from '../../../agent/define-agent.ts'
import { FailedCalls } from '../../../agent/turn-ending.ts'
import { toolSet } from '../../../agent/toolbox.ts'
import type { DryAct } from '../../../contract/dry-turn.ts'
import type { DecisionContext } from '../../../core/decision-context.ts'
import type { EventStore } from '../../../core/event-store.ts'
import { type ToolDefinition, argumentsHash, onlyReads as isReading } from '../../../tools/define-tool.ts'
import type { SessionFor, Skills } from '../../skills/sessions.ts'
import { effectInput, effectKey } from '../../effects/effect.ts'
import type { Lanes } from '../../effects/wiring.ts'
import { actsOf } from '../../../skills/session/context.ts'
import type { ProposalSession } from '../../../skills/session/session.ts'
import { demandReply, followed, noteAct, noteCall, noteFailedRead } from '../deps.ts'
import type { Turn } from '../turn.ts'
import { type AskingTurn, turnModel } from '../turn-model.ts'

export type DryParts = Lanes & { skills: Skills; events: Pick<EventStore, 'replay'> }
export type DryTurn = AskingTurn &
  Pick<Turn, 'inputs' | 'outputs' | 'failed_reads' | 'failed_calls' | 'running' | 'warnings'> & {
    seen: { context: DecisionContext }
    decided_at: number
    now: () => number
    did: DryAct[]
    /** Turns whose calls without a key are answered as they were. */
    answers_of: readonly string[]
    /** Ids of the calls that answered one: the same call twice had two outputs. */
    answered: Set<string>
    /** The places in `acts` of calls that were made before. */
    repeats: Set<number>
    /** Names of the bindings and requests that it used and that could have acted. */
    refused: string[]
  }

const RECORDED = { recorded: true, note: 'This is a dry run: the call was recorded, not made.' } as const

/**
 * The dependencies of a trigger that is asked again: what acts is recorded, and what only reads
 * runs. A call that was made before is answered with its recorded output.
 */
export async function dryDeps(parts: DryParts, turn: DryTurn): Promise<AgentDeps> {
  const { scope, settings, effects, toolbox, hide, db, env } = parts
  const { turn_id, signal, acts, did } = turn
  await toolbox.ready()
  signal.throwIfAborted()
  const failures = new FailedCalls(turn, hide)
  const perform = async (name: string, input: unknown): Promise<unknown> => {
    signal.throwIfAborted()
    const found = toolbox.find(name)
    if (!found.ok) throw new Error(found.detail)
    const keys = toolbox.keyOf(name, input)
    const answer = () => noteFailedRead(turn, { name, keys, ...found }, () => answerTo(parts, turn, { tool: name, input, ...found }))
    const { output, is_repeat } = await failures.watch({ tool: name, input }, answer).catch((error: unknown) => {
      if (isReading(found.definition)) did.push({ kind: 'tool', name, input })
      throw error
    })
    signal.throwIfAborted()
    if (keys && is_repeat) turn.repeats.add(turn.acts.length)
    // A call that was only recorded has no output.
    if (keys && output === RECORDED) noteAct(turn, { act: 'call_tool', tool: name, ...keys }, input)
    else if (keys) noteCall(turn, { act: 'call_tool', tool: name, ...keys }, { input, output })
    did.push({ kind: 'tool', name, input })
    return output
  }
  const call = followed(turn, perform)
  const refuse = refusals(turn)
  const deps: Omit<AgentDeps, 'model'> = {
    env: onlyValues(env, refuse),
    db: onlyReads(db, refuse),
    scope,
    store: recordingStore(parts, turn, refuse),
    signal,
    turn_id,
    now: turn.now,
    call,
    needs: () => {},
    done: (name, input) => {
      const key = toolbox.keyOf(name, input)?.idempotence_key
      return typeof key === 'string' && effects.journal.wasDone(name, key, turn.decided_at)
    },
    context: turn.seen.context,
    attempt: 1,
    settings: settings(),
    fetch: onlySafe(parts.fetch, turn, refuse),
    tools: toolSet(toolbox, call),
    reply: (content) => {
      signal.throwIfAborted()
      demandReply(content)
      acts.push({ act: 'reply', content })
      did.push({ kind: 'reply', name: 'reply', input: { content } })
    },
    stream: () => signal.throwIfAborted(),
  }
  let model: LanguageModelV4 | undefined
  const get = () => (model ??= turnModel({ ...parts, skills: recordingSkills(parts.skills, turn) }, turn))
  return Object.defineProperty(deps, 'model', { enumerable: true, get }) as AgentDeps
}

type Called = { tool: string; input: unknown; definition: ToolDefinition }
type Refuse = (name: string) => Error

type Answered = { output: unknown; is_repeat: boolean }

async function answerTo({ effects, scope, settings }: DryParts, turn: DryTurn, called: Called): Promise<Answered> {
  const { tool, definition } = called
  const input = effectInput(called)
  const key = effectKey({ ...called, input }, scope)
  const { journal } = effects
  const arguments_hash = argumentsHash(input)
  const same = key === null ? journal.sameCalls({ owner: '', earlier: turn.answers_of, tool, arguments_hash }) : []
  const before = key === null ? same.find(({ id }) => !turn.answered.has(id)) : journal.byKey(tool, key)
  if (before) turn.answered.add(before.id)
  const is_repeat = before?.status === 'ok' && before.output !== null
  const failed = before || !isReading(definition) ? null : journal.failedRead({ earlier: turn.answers_of, tool, arguments_hash })
  if (failed) throw new Error(failed.error ?? '')
  if (definition.repeatable === true && !(is_repeat && before.error === null)) {
    const { turn_id, head, signal } = turn
    const request = { ...called, cause: { by: `dry:${turn_id}` }, turn_id: null, earlier_turns: [], head, signal }
    return { output: await effects.run({ ...request, timeout_ms: settings().effect_timeout_ms }), is_repeat: false }
  }
  return { output: is_repeat ? JSON.parse(before.output ?? '') : RECORDED, is_repeat }
}

/** Notes what would have acted, even if the trigger catches the error. */
const refusals =
  ({ refused }: DryTurn): Refuse =>
  (name) => {
    refused.push(name)
    return new Error(`${name} may act, and this is a dry run`)
  }

/** Variables are values; a binding could act. */
function onlyValues<Env extends object>(env: Env, refuse: Refuse): Env {
  return new Proxy(env, {
    get: (target, field) => {
      const value: unknown = Reflect.get(target, field)
      if (typeof field === 'symbol' || value === undefined || typeof value === 'string') return value
      throw refuse(`env.${field}`)
    },
  })
}

const SELECT = /^\s*select\b[^;]*;?\s*$/i

function onlyReads(db: D1Database, refuse: Refuse): D1Database {
  return {
    prepare: (sql: string) => {
      if (!SELECT.test(sql)) throw refuse('db')
      return db.prepare(sql)
    },
    batch: (list: D1PreparedStatement[]) => db.batch(list),
    exec: () => {
      throw refuse('db.exec')
    },
  } as unknown as D1Database
}

/** Requests by methods that are safe as HTTP defines it. */
function onlySafe(fetch: typeof globalThis.fetch, { signal }: DryTurn, refuse: Refuse): typeof globalThis.fetch {
  return async (input, init) => {
    const method = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase()
    if (method !== 'GET' && method !== 'HEAD') throw refuse(`fetch with ${method}`)
    return fetch(input, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, signal]) : signal })
  }
}

function recordingStore({ events: store }: DryParts, turn: DryTurn, refuse: Refuse): EventStore {
  const { signal, did } = turn
  const refused = (name: string) => async () => {
    throw refuse(`store.${name}`)
  }
  return {
    publish: async (...events) => {
      signal.throwIfAborted()
      for (const event of events) noteAct(turn, { act: 'emit_event', event_type: event.type }, event)
      did.push(...events.map((event): DryAct => ({ kind: 'emit', name: event.type, input: event })))
      return events.map(({ id, scope }) => ({ id, scope, status: 'accepted' as const }))
    },
    subscribe: () => {
      throw refuse('store.subscribe')
    },
    ack: refused('ack'),
    nack: refused('nack'),
    replay: (span) => store.replay(span),
  }
}

/** The gate decides on proposals, and no skill runs. */
function recordingSkills(skills: Skills, { acts, did }: DryTurn) {
  const open = async ({ acts: _acts, ...owner }: SessionFor): Promise<ProposalSession> => {
    const session = await skills.open(owner)
    return {
      bulletin: (text) => session.bulletin(text),
      propose: async (proposal, request) => {
        const result = await session.propose(proposal, { ...request, dry_run: true })
        const own = actsOf(proposal, result)
        acts.push(...own)
        if (own.length > 0) did.push({ kind: 'skill', name: proposal.skill_id, input: proposal.inputs })
        return result
      },
    }
  }
  return { any: () => skills.any(), agentRoles: skills.agentRoles, open }
}
