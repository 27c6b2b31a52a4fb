import { isDeepStrictEqual } from 'node:util'
import { heldBy, isOfOthers, saysOf } from '../evidence/attribution.ts'
import { isMasked } from '../base/secrets.ts'
import { asJson, type Json } from '../base/json.ts'
import { toolCallOf, withoutOutputs, type Action, type SequenceBranch, type Sequence, type SequenceAct } from '../contract/action.ts'
import type { Event } from '../core/event.ts'
import { actsOnPath, resolveAct } from './sequence.ts'
import {
  type Act,
  type CallKeys,
  type Decision,
  type KeyOf,
  sameSkill,
  skillAct,
  type ComparisonTerms,
  type FailedRead,
} from '../contract/reflex.ts'

/** True if the decision contains the same act; null if the action cannot be compared. */
export function agreement(action: Action, { acts }: Decision, keys: CallKeys | null): boolean | null {
  const call = toolCallOf(action)
  if (call)
    return agreesInCall(
      keys,
      acts.filter(isAct('call_tool')).filter(({ tool }) => tool === call.tool),
    )
  switch (action.action_type) {
    case 'reply':
      return acts.filter(isAct('reply')).some(({ content }) => normalText(content) === normalText(action.content))
    case 'emit_event':
      return acts.filter(isAct('emit_event')).some(({ event_type }) => event_type === action.event.type)
    case 'set_scratch':
      return acts.filter(isAct('set_scratch')).some(({ key, value }) => key === action.key && isDeepStrictEqual(value, action.value))
    case 'run_skill': {
      const own = skillAct(action.skill_id, action.inputs)
      return acts.filter(isAct('run_skill')).some((act) => sameSkill(act.skill_id, own.skill_id) && act.inputs_hash === own.inputs_hash)
    }
    case 'ignore':
      return acts.length === 0
    case 'call_tool':
    case 'sequence':
    case 'escalate':
    case 'cancel_turn':
    case 'write_artifact':
    case 'invoke_artifact':
      break
  }
  return null
}

type ComparedAct = {
  version: { id: string; version: number }
  action: Action
  decision: Decision
  seen: Map<string, number>
} & ComparisonTerms

/** Compares an action. `seen` counts equal actions in this decision: one act confirms only one. */
export function agreedIn({ version, action, decision, seen, ...terms }: ComparedAct, keyOf: KeyOf): { agreed: boolean | null } {
  if (action.action_type === 'ignore')
    return { agreed: terms.others === true || (terms.unclear === true ? null : agreement(action, decision, null)) }
  const call = toolCallOf(action)
  const named = call && keyOf(call.tool, call.args)
  const keyed = named !== null && named.idempotence_key !== null
  const wish = JSON.stringify([version.id, version.version, keyed ? named.idempotence_key : action])
  const before = seen.get(wish) ?? 0
  seen.set(wish, before + 1)
  if (action.action_type === 'sequence') return { agreed: sequenceAgrees(action, decision, { before, keyOf, ...terms }) }
  const matching = decision.acts.filter((act) => agreement(action, { ...decision, acts: [act] }, named) === true).length
  const comparable = agreement(action, decision, named) !== null && !(keyed && before > 0)
  return { agreed: comparable ? matching > before : null }
}

type Comparing = ComparisonTerms & { keyOf: KeyOf }

/**
 * True if the decision has all acts of the sequence in their order, and no other if it is about one
 * event. Null if that depends on outputs that are not known, and if they are such that a sequence
 * with branches takes none.
 */
export function sequenceAgrees(
  { acts: own, branches, any_order = false }: Sequence,
  decision: Decision,
  { before = 0, ...known }: Comparing & { before?: number },
): boolean | null {
  const { acts: decided, terms } = branches ? withFailedReads(decision, known, own.at(-1)) : { ...decision, terms: known }
  const { words = 'exact', alone = false } = terms
  const placed = own.map((act, place) => ({ act, place }))
  const counted = words === 'exact' ? placed : withoutWords(placed, isReply)
  const wished = words === 'none' ? counted : placed
  const made = decided.map((act, place) => ({ act, place }))
  const acts = words === 'exact' ? made : withoutWords(made, ({ act }) => act.act === 'reply')
  if (branches) return branchAgrees({ own, branches, wished, counted }, decided, { acts, before, ...terms })
  const compare = any_order ? fitsInAnyOrder : fits
  const { length } = counted
  if (alone) return acts.length === length ? compare(wished, acts, terms) : false
  let found = 0
  let unknown = false
  for (let from = 0; from + length <= acts.length && found <= before;) {
    const fit = compare(wished, acts.slice(from, from + length), terms)
    unknown ||= fit === null
    found += fit === true ? 1 : 0
    from += fit === true ? length : 1
  }
  if (found > before) return true
  // The words of a turn on several events are about all of them.
  return unknown || wished.some(isReply) ? null : false
}

/** The decision with the calls like the last act before branches that failed, and their outputs. */
function withFailedReads({ acts }: Decision, terms: Comparing, last: SequenceAct | undefined): { acts: readonly Act[]; terms: Comparing } {
  const isLike = ({ act }: FailedRead): boolean => act.act === 'call_tool' && last?.action_type === 'call_tool' && act.tool === last.tool
  const failed = (terms.failed_reads ?? []).filter(isLike)
  if (failed.length === 0) return { acts, terms }
  const made = acts.map((act, at) => ({ act, at, output: terms.outputs?.[at] }))
  // Sorting keeps what failed before the act at its place.
  const all = [...failed, ...made].sort((one, other) => one.at - other.at)
  return {
    acts: all.map(({ act }) => act),
    terms: { ...terms, outputs: Object.fromEntries(all.map(({ output }, place) => [place, output])) },
  }
}

/** `counted`: the acts of `wished` without words of which any will do. */
type Branched = Record<'wished' | 'counted', readonly Placed[]> & { own: readonly SequenceAct[]; branches: readonly SequenceBranch[] }
type MadeAct = { act: Act; place: number }

/** Compares the path that the outputs of the decision's own calls lead to. */
function branchAgrees(
  { own, branches, wished, counted }: Branched,
  decided: readonly Act[],
  { acts, before, ...terms }: Comparing & { acts: readonly MadeAct[]; before: number },
): boolean | null {
  const last = terms.alone === true ? 0 : acts.length - counted.length
  for (let from = 0; from <= last; from += 1) {
    const begun = acts.slice(from, from + counted.length)
    if (begun.length < counted.length || fits(wished, begun, terms) === false) continue
    const known: (Json | undefined)[] = own.map(() => undefined)
    for (const [index, { place }] of counted.entries()) known[place] = outputOf(begun[index]?.place, terms.outputs)
    const path = actsOnPath({ acts: own, branches }, known)
    if (path === null) return null
    const sequence: Sequence = { action_type: 'sequence', acts: [...path] }
    return sequenceAgrees(sequence, { by: 'turn', acts: [...decided] }, { before, ...terms })
  }
  return wished.some(isReply) && terms.alone !== true ? null : false
}

const outputOf = (place: number | undefined, outputs: Comparing['outputs']): Json | undefined =>
  outputs && place !== undefined && place in outputs ? asJson(outputs[place]) : undefined

/** The acts beside words, unless words are all there is. */
function withoutWords<One>(acts: readonly One[], isWords: (act: One) => boolean): readonly One[] {
  const others = acts.filter((act) => !isWords(act))
  return others.length === 0 ? acts : others
}

type Placed = { act: SequenceAct; place: number }
const isReply = ({ act }: Placed): boolean => act.action_type === 'reply'

/** `repeats`: the places of acts that were made before: they may be for each event in `seen`. */
type Considered = {
  events: readonly Event[]
  inputs: Readonly<Record<number, unknown>>
  seen?: readonly Event[]
  repeats?: ReadonlySet<number>
}

/**
 * Tells whose the acts of a decision are, for the event with an id. `others`: all acts name what
 * other events hold and it does not. `words`: so do all but words, which name nothing of it.
 * `own`: one may be this event's. Words beside other acts are about all, unless somebody hears
 * them. `inputs`: of acts that do not have their own, by their places.
 */
export function ownersOfActs(
  { acts }: Decision,
  { events, inputs, seen = [], repeats = new Set() }: Considered,
): (id: string | undefined) => 'own' | 'others' | 'words' {
  const heard = events.some(({ meta }) => meta.heard === true)
  const held = heldBy(events)
  const heldBySeen = repeats.size === 0 ? held : heldBy([...events, ...seen])
  const placed = acts.map((act, index) => ({
    act,
    input: ownInput(act) ?? inputs[index],
    held: repeats.has(index) ? heldBySeen : held,
  }))
  const counted = heard ? placed : withoutWords(placed, ({ act }) => act.act === 'reply')
  return (id) => {
    const place = events.findIndex((event) => event.id === id)
    if (place < 0 || counted.length === 0) return 'own'
    const left = counted.filter((one) => !isOfOthers(one.input, one.held, place))
    if (left.length === 0) return 'others'
    const areWords = left.every(({ act }) => act.act === 'reply' && !saysOf(act.content, held, place))
    return events.length > 1 && areWords ? 'words' : 'own'
  }
}

const ownInput = (act: Act): unknown => (act.act === 'reply' ? act.content : act.act === 'set_scratch' ? act.value : undefined)

/** Act for act. Later acts see the outputs of those before them. Any words will do, also none. */
function fits(
  own: readonly Placed[],
  decided: readonly { act: Act; place: number }[],
  { words, outputs, keyOf }: Comparing,
): boolean | null {
  const known: (Json | undefined)[] = []
  let unknown = false
  let next = 0
  for (const { act: wish, place } of own) {
    known.length = place
    const resolved = resolveAct(wish, known)
    const { act, place: made = 0 } = decided[next] ?? {}
    const isAnyWords = words === 'said' && wish.action_type === 'reply' && (resolved.ok || resolved.reason === 'unknown')
    if (!isAnyWords || act?.act === 'reply') next += 1
    if (isAnyWords) continue
    if (!act) return false
    known[place] = outputOf(made, outputs)
    const action = resolved.ok ? resolved.action : withoutOutputs(wish)
    if (!resolved.ok && (resolved.reason === 'missing' || !isAlike(action, act))) return false
    if (!resolved.ok) unknown = true
    else {
      const call = toolCallOf(action)
      if (agreement(action, { by: 'turn', acts: [act] }, call && keyOf(call.tool, call.args)) !== true) return false
    }
  }
  if (next < decided.length) return false
  return unknown ? null : true
}

/** The same act for each. */
function fitsInAnyOrder(own: readonly Placed[], decided: readonly MadeAct[], terms: Comparing): boolean {
  const left = [...decided]
  return own.every((wish) => {
    if (terms.words === 'said' && isReply(wish)) return true
    const at = left.findIndex((one) => fits([wish], [one], terms) === true)
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  })
}

/** True if the act could be this action with other values. */
function isAlike(action: Action, act: Act): boolean {
  if (action.action_type === 'call_tool') return act.act === 'call_tool' && act.tool === action.tool
  if (action.action_type === 'set_scratch') return act.act === 'set_scratch' && act.key === action.key
  return act.act === action.action_type
}

/** The keys of a call in a recording, whose masked values cannot be compared. */
export function recordedKeys(keys: CallKeys | null, args: unknown): CallKeys | null {
  if (keys === null || !isMasked(args)) return keys
  const { idempotence_key, arguments_hash } = keys
  return { idempotence_key, arguments_hash }
}

/** Calls with the same key and the same values have the same effect, whatever their wording. */
function agreesInCall(own: CallKeys | null, calls: readonly Extract<Act, { act: 'call_tool' }>[]): boolean {
  if (own === null) return false
  return calls.some(({ idempotence_key, arguments_hash, values_hash = own.values_hash }) => {
    if (own.idempotence_key === null || idempotence_key === null) return own.arguments_hash === arguments_hash
    return own.idempotence_key === idempotence_key && (own.values_hash ?? values_hash) === values_hash
  })
}

const isAct =
  <Kind extends Act['act']>(kind: Kind) =>
  (act: Act): act is Extract<Act, { act: Kind }> =>
    act.act === kind

/** The signs around a word. A run of signs is tried once, so that the time is linear. */
const AROUND_WORDS = /^[*_`~#"'“”‘’„«»([]+|(?<![*_`~"'“”‘’«»)\].,!;:])[*_`~"'“”‘’«»)\].,!;:]+$/gu

/**
 * Replies agree if they differ only in case, spacing, quotes, emphasis or surrounding punctuation.
 */
const normalText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[\u2010-\u2015\u2212]/g, '-')
    .split(/\s+/)
    .map((word) => word.replaceAll(AROUND_WORDS, ''))
    .filter((word) => word !== '' && word !== '-')
    .join(' ')
