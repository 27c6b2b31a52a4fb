import { z } from 'zod'
import { jsonHash } from '../base/hash.ts'
import { action, actionsIn, readsOutputs, toolCallOf, type Action } from './action.ts'
import type { ScopeLicence } from './licence.ts'
import type { InMs } from '../base/time.ts'

const time = z.iso.datetime()
const count = z.int()
const text = z.string()

/** Paths name a version as `id@version`, so an id holds neither `/` nor `@`. */
export const reflexId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, 'an id is 1 to 128 characters of A-Z a-z 0-9 . _ : and -')
export const reflexVersionNumber = z.int().min(1).max(1_000_000)

export const reflexStates = ['draft', 'shadow', 'active', 'retired'] as const
export const reflexState = z
  .enum(reflexStates)
  .describe(
    '`draft`: stored, not run on events. `shadow`: run on live events without acting. `active`: it acts. `retired`: never run again. The newest active version acts.',
  )
export type ReflexState = z.infer<typeof reflexState>

/** `project`: keys whose scopes overlap with the owner's may read it. `org`: all keys. */
export const reflexSharing = ['project', 'org'] as const

const provenance = z.object({
  by: text.describe("A key's name, or the agent of `scope`."),
  scope: text.nullable(),
  template: text.nullable(),
  origin: z.object({ id: text, version: count, hash: text }).nullable().describe('The version that it was copied from.'),
  run: text.optional().describe('The run of learning that wrote it.'),
})
export type Provenance = z.infer<typeof provenance>

export const listedReflex = z
  .object({
    id: text,
    version: count,
    hash: text.describe("SHA-256 of the code. A version's code never changes."),
    owner: text.describe("A key's name, or `scope:NAME` if the agent of a scope wrote it."),
    scopes: z.array(text).describe('Scopes the owner may act in. Elsewhere the reflex runs only where a chain pins its version.'),
    description: text,
    state: reflexState,
    state_reason: text.nullable(),
    by_proof: z
      .boolean()
      .describe('True if the scope of its agent activated it by proof: it acts in a scope only as far as its certificate there allows.'),
    sealed: z
      .boolean()
      .describe(
        "True once it was listed for sale, and for a bought copy: only its owner, and admins who cover all of the owner's scopes, read its code.",
      ),
    sharing: z
      .enum(reflexSharing)
      .describe('`project`: for keys and scopes that share a scope with its owner, and for licensees. `org`: published, for all.'),
    provenance,
    created_at: time,
    idle: z
      .object({ since: time.nullable(), reason: text })
      .optional()
      .describe('Set if it is active by proof and acts in no scope that the key covers: since when, if that is known, and why.'),
  })
  .meta({ id: 'ListedReflex' })

/** A reflex in a list, by one of its versions. */
export const reflexItem = listedReflex
  .extend({
    acts: count.nullable().describe('The version that acts where a chain follows the reflex: the newest active one; null if none is.'),
  })
  .meta({ id: 'ReflexItem' })

export const reflex = reflexItem
  .extend({
    code: text.nullable().describe('Null if it is sealed and the key may not read it.'),
    versions: z
      .array(z.object({ version: count, hash: text, state: reflexState, state_reason: text.nullable(), state_at: time, created_at: time }))
      .describe('All versions, newest first.'),
  })
  .meta({ id: 'Reflex' })

export const registeredReflex = listedReflex
  .pick({ id: true, version: true, hash: true, owner: true, state: true })
  .extend({ next: text.nullable().describe('What it needs before it acts; null: it acts.') })
  .meta({ id: 'RegisteredReflex' })

/** A stored version. `owner_id` is a key's id; an agent's is `scope:NAME`, as is `owner`. */
export type ReflexVersion = InMs<Omit<z.infer<typeof listedReflex>, 'idle'>, 'created_at'> & {
  owner_id: string
  code: string
  licences?: readonly ScopeLicence[]
}

const AGENT = 'scope:'

/** The owner id of what a scope's agent creates. No key may have such an id or name. */
export const agentOwner = (scope: string): string => `${AGENT}${scope}`

/** The scope whose agent owns it; null if a key does. */
export const scopeOfOwner = (owner_id: string): string | null => (owner_id.startsWith(AGENT) ? owner_id.slice(AGENT.length) : null)

/** Learning registers a reflex beside an active one under a further id: `ID.g2`, `ID.g3`. */
export const generationId = (id: string, generation: number): string => (generation === 1 ? id : `${id}.g${generation}`)

/** The id without its generation. */
export const firstGenerationOf = (id: string): string => id.replace(/\.g\d+$/, '')

export const reflexReference = z.strictObject({
  id: reflexId,
  version: reflexVersionNumber.optional().describe('Unset: follows the reflex, whichever version is active or in shadow.'),
  cooldown_s: z.number().min(0).max(86_400).optional().describe('Minimum number of seconds between two fires.'),
  rate: z.int().min(1).max(60_000).optional().describe('Maximum number of fires per minute.'),
})
export type ReflexReference = z.infer<typeof reflexReference>

export const passes = z.object({ null: count, error: count, limit: count, invalid_action: count })

export const reflexRun = z
  .object({
    action: action.nullable(),
    reason: z.enum(['fired', ...passes.keyof().options]),
    error: text.nullable(),
    fuel: count.describe('Work done. The same code on the same context always uses the same amount.'),
    duration_us: z.number().describe('0 where the clock of a Worker does not advance during computation.'),
  })
  .meta({ id: 'ReflexRun' })
/** A run of a reflex: `action` is set if `reason` is `fired`. */
export type ReflexRun = z.infer<typeof reflexRun>

export const act = z
  .discriminatedUnion('act', [
    z.object({
      act: z.literal('call_tool'),
      tool: text,
      idempotence_key: text.nullable(),
      arguments_hash: text,
      values_hash: text.optional().describe('Of a call with a key: its arguments, of whose texts of several words only the numbers count.'),
    }),
    z.object({ act: z.literal('emit_event'), event_type: text }),
    z.object({ act: z.literal('reply'), content: text }),
    z.object({ act: z.literal('set_scratch'), key: text, value: z.unknown() }),
    z.object({ act: z.literal('run_skill'), skill_id: text, inputs_hash: text }),
    z.object({ act: z.literal('other'), action_type: text }),
  ])
  .meta({ id: 'Act', description: 'An act on an event, in a comparable form.' })
export type Act = z.infer<typeof act>

type SkillAct = Extract<Act, { act: 'run_skill' }>

/** `skill_id` may name a version. The inputs are hashed, since acts are logged. */
export function skillAct(skill_id: string, inputs: Record<string, unknown>): SkillAct {
  return { act: 'run_skill', skill_id, inputs_hash: jsonHash(inputs) }
}

/** An id without a version follows the skill and matches any of its versions. */
export function sameSkill(left: string, right: string): boolean {
  const one = skillName(left)
  const other = skillName(right)
  if (one.id !== other.id) return false
  return one.version === undefined || other.version === undefined || one.version === other.version
}

/** Splits `id@version`. */
export function skillName(written: string): { id: string; version: string | undefined } {
  const [id = '', version] = written.split('@', 2)
  return { id, version }
}

/** The decision about one event, by a turn or a reflex. An empty `acts`: nothing was done. */
export type Decision = { by: 'turn' | 'reflex'; acts: Act[] }

/**
 * An event with a reflex's context and the decision, or null while it is open. `rebuilt`: nothing
 * was recorded, so scratch, thinking and recent actions are empty.
 */
export type ReflexRecording = {
  seq: number
  event_id: string
  at: string
  source: 'recorded' | 'rebuilt'
  context: unknown
  decision: Decision | null
}

/**
 * The meaning of words beside other acts. `said`: there are some, and any will do. `none`: they are
 * no part of the decision.
 */
export type Words = 'exact' | 'said' | 'none'

/** A call that only reads, and failed. `at`: the number of acts before it. */
export type FailedRead = { at: number; act: Act; output: unknown }

/**
 * The terms of a comparison. `outputs`: known outputs of the decision's acts, by their places.
 * `alone`: the decision is about one event, so that a sequence must have all of its acts. `words`:
 * the meaning of replies beside other acts. `others`: all acts of the decision are about its other
 * events. `unclear`: its words may be about an event that the version left. `failed_reads`: what a
 * branch may be for.
 */
export type ComparisonTerms = {
  failed_reads?: readonly FailedRead[]
  words?: Words
  outputs?: Readonly<Record<number, unknown>>
  alone?: boolean
  others?: boolean
  unclear?: boolean
}
/**
 * Calls with keys are the same if these and their values are equal, whatever the wording of texts
 * of several words. Without keys, all of their arguments are. Calls of older versions have no
 * `values_hash`.
 */
export type CallKeys = { idempotence_key: string | null; arguments_hash: string; values_hash?: string | undefined }
/** Null if there is no such tool, or if it rejects the arguments. */
export type KeyOf = (tool: string, args: unknown) => CallKeys | null

/** The acts of a decision by one action: none if there was nothing to do. */
export function actsOf(action: Action, identify: KeyOf): Act[] {
  if (action.action_type === 'ignore') return []
  // An act that uses an output, or is of a branch, is not known before the sequence has run.
  const isOpen = action.action_type === 'sequence' ? action.acts.map(readsOutputs) : []
  const { branches, ...first } = action.action_type === 'sequence' ? action : { ...action, branches: undefined }
  const acts = actionsIn(first).map((one, index) => (isOpen[index] ? other(one) : actOf(one, identify)))
  return branches ? [...acts, other(action)] : acts
}

const other = ({ action_type }: Action): Act => ({ act: 'other', action_type })

function actOf(action: Action, identify: KeyOf): Act {
  switch (action.action_type) {
    case 'call_tool':
    case 'write_artifact':
    case 'invoke_artifact': {
      const call = toolCallOf(action)
      const named = call && identify(call.tool, call.args)
      return named ? { act: 'call_tool', tool: call.tool, ...named } : other(action)
    }
    case 'emit_event':
      return { act: 'emit_event', event_type: action.event.type }
    case 'reply':
      return { act: 'reply', content: action.content }
    case 'set_scratch':
      return { act: 'set_scratch', key: action.key, value: action.value }
    case 'run_skill':
      return skillAct(action.skill_id, action.inputs)
    case 'sequence':
    case 'ignore':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return other(action)
}

/** Opens the id of a decision model as the author of an action. No reflex has such an id. */
export const DECISION_ID = 'decision:'
export const isDecisionId = (id: string): boolean => id.startsWith(DECISION_ID)
