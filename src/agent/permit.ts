import { flawsText } from '../base/error-text.ts'
import { createHash } from 'node:crypto'
import type { AgentRegistry } from './registry.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import { derive, type Event } from '../core/event.ts'
import { fitsBytes, type JsonFields } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { judgeEvent } from '../events/parse-event.ts'
import {
  actsIn,
  MOST_ACTS,
  readsOutputs,
  toolCallOf,
  withoutOutputs,
  type Action,
  type Sequence,
  type ActionCall,
} from '../contract/action.ts'
import { isAsked, type DecisionAsked } from '../contract/decision-asked.ts'
import { reflexId, type ReflexVersion } from '../contract/reflex.ts'
import type { Permission } from '../contract/action.ts'
import { answersIn } from '../features/decisions/agent/answers.ts'
import type { Toolbox } from './toolbox.ts'
import { CALLER_TOOL, isModelAsked } from '../contract/model-asked.ts'

type PermitQuestion = {
  scope: string
  event: Event
  version: Pick<ReflexVersion, 'id'>
  toolbox: Toolbox
  agents: AgentRegistry
  scratch: Readonly<Record<string, unknown>>
  now: number
}

const refused = (detail: string): Permission => ({ ok: false, detail })
const at_once: Permission = { ok: true, lane: false }

/** Applies the checks of a turn's own actions, with a reason for each refusal. */
export function permit(action: Action, asked: PermitQuestion): Permission {
  if (isAsked(asked.event)) return answering(action, asked.event)
  if (isModelAsked(asked.event) && !forCallers.has(action.action_type)) return refused(FOR_CALLERS)
  switch (action.action_type) {
    case 'call_tool':
      return calling(action, asked)
    case 'emit_event':
      return emission(action, asked)
    case 'write_artifact':
      if (action.artifact_type !== 'reflex')
        return refused(`there are no artifacts of type ${action.artifact_type} here: the type is reflex`)
      if (!reflexId.safeParse(action.artifact_id).success) return refused(`${action.artifact_id} is no id of a reflex`)
      return calling(action, asked)
    case 'invoke_artifact':
      return invocation(action, asked)
    case 'run_skill':
      return { ok: true, lane: true, work: { kind: 'skill', skill_id: action.skill_id, inputs: action.inputs as JsonFields } }
    case 'set_scratch':
      return note(action, asked)
    case 'sequence':
      return inOrder(action, asked)
    case 'reply':
    case 'ignore':
    case 'escalate':
    case 'cancel_turn':
      break
  }
  return at_once
}

const forCallers: ReadonlySet<Action['action_type']> = new Set(['call_tool', 'reply', 'sequence', 'escalate'])
const FOR_CALLERS = 'a request to a model takes a reply, calls of the tools that it offers, or escalate'

/** A request for a decision is answered, or left to the decision model. */
function answering(action: Action, { questions }: DecisionAsked): Permission {
  if (action.action_type === 'escalate') return at_once
  if (action.action_type !== 'reply') return refused('a request for a decision takes a reply or escalate')
  const answered = answersIn(action.content, questions)
  return answered.ok ? at_once : refused(answered.detail)
}

/**
 * Permits a sequence if it permits each act. Acts that use outputs are permitted again with them,
 * as all are, when their turn comes.
 */
function inOrder(sequence: Sequence, asked: PermitQuestion): Permission {
  const { acts, branches = [] } = sequence
  if (sequence.any_order && (branches.length > 0 || acts.some(readsOutputs)))
    return refused('a sequence whose acts may be in any order has neither branches nor acts that use outputs')
  // Its caller makes the calls, and their outputs come with another request.
  if (branches.length > 0 && isModelAsked(asked.event)) return refused('an answer to a request to a model has no branches')
  const longest = acts.length + Math.max(0, ...branches.map((branch) => branch.acts.length))
  if (longest > MOST_ACTS) return refused(`a branch makes ${longest} acts of it, and a sequence has at most ${MOST_ACTS}`)
  for (const [place, act] of actsIn(sequence).entries()) {
    const action = withoutOutputs(act)
    const permission = readsOutputs(act) ? known(action, asked) : permit(action, asked)
    if (!permission.ok) return refused(`act ${place + 1}: ${permission.detail}`)
  }
  return { ok: true, lane: true, work: { kind: 'sequence', acts, ...(branches.length > 0 && { branches }) } }
}

/** An act whose arguments are not known yet needs a tool that exists. */
function known(action: Action, { toolbox }: PermitQuestion): Permission {
  const found = action.action_type === 'call_tool' ? toolbox.find(action.tool) : null
  return found?.ok === false ? refused(found.detail) : at_once
}

/** Permits the call that the action is; the caller knows that it is one. */
function calling(action: Action, { toolbox, event }: PermitQuestion): Permission {
  const { tool: name, args: input } = toolCallOf(action) as ActionCall
  // A caller runs the tools that it offers, and no others.
  if (isModelAsked(event) !== name.startsWith(CALLER_TOOL)) return refused(FOR_CALLERS)
  if (isModelAsked(event) && !event.tools.includes(name.slice(CALLER_TOOL.length))) return refused(`the request offers no tool ${name}`)
  const found = toolbox.find(name)
  if (!found.ok) return refused(found.detail)
  return accepts(found.definition, name, input)
}

function accepts(definition: ToolDefinition, name: string, input: unknown): Permission {
  const parsed = definition.input.safeParse(input)
  if (parsed.success) return { ok: true, lane: true, work: { kind: 'tool', tool: name, input } }
  const [issue] = parsed.error.issues
  return refused(`tool ${name} does not take these arguments: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`.trim())
}

/** Lets a reflex change its agent's chain, and take part in the market. */
function invocation(action: Extract<Action, { action_type: 'invoke_artifact' }>, asked: PermitQuestion): Permission {
  const { artifact_id, method } = action
  if (toolCallOf(action)) return calling(action, asked)
  return refused(`artifact ${artifact_id} has no method ${method} here: see docs/market.md`)
}

function note({ key, value }: Extract<Action, { action_type: 'set_scratch' }>, { scratch }: PermitQuestion): Permission {
  if (key === '__proto__') return refused('__proto__ is a name that no field may have')
  const fits = fitsBytes(JSON.stringify({ ...scratch, [key]: value }), limits.result_bytes)
  return fits ? at_once : refused(`the scratch would take more than ${limits.result_bytes} bytes as JSON`)
}

/** Maximum depth of reflexes that react to each other's events. */
const DEEPEST = 10
/** The inbox adds to an id that somebody has sent. */
const EMITTED = /^[0-9a-f]{32}-(\d+)(?:$|:)/

/**
 * Derives a child event with a deterministic id that encodes the reflex depth. Its target is this
 * scope: only a turn may send events to other scopes.
 */
function emission(
  action: Extract<Action, { action_type: 'emit_event' }>,
  { scope, event, version, agents, now, toolbox }: PermitQuestion,
): Permission {
  const source = `reflex:${version.id}`.slice(0, 128)
  const depth = event.source.startsWith('reflex:') ? Number(EMITTED.exec(event.id)?.[1] ?? 0) + 1 : 1
  if (depth > DEEPEST)
    return refused(`${DEEPEST} reflexes stand behind this event already, each called by the one before: this looks like a loop`)
  const key = action.idempotence_key ?? event.id
  const hash = createHash('sha256')
    .update(JSON.stringify([scope, version.id, key]))
    .digest('hex')
  const child = derive(event, { ...action.event, id: `${hash.slice(0, 32)}-${depth}`, scope: action.event['scope'] ?? scope, source }, now)
  const parsed = judgeEvent(child, {
    union: agents.eventSchema,
    types: agents.eventTypes,
    declared: toolbox.declaredTypes,
    defaults: { now, source, scope },
    sender: event.meta.sender,
    scope,
  })
  if (parsed.ok) return { ok: true, lane: true, work: { kind: 'event', event: parsed.event } }
  return refused(`the event is not valid: ${flawsText(parsed.errors)}`)
}
