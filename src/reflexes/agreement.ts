import { isDeepStrictEqual } from 'node:util'
import { toolCallOf, type Action } from '../contract/action.ts'
import { type Act, type CallKeys, type Decision, type KeyOf, sameSkill, skillAct } from '../contract/reflex.ts'

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
    case 'escalate':
    case 'cancel_turn':
    case 'write_artifact':
    case 'invoke_artifact':
      break
  }
  return null
}

type ComparedAct = { version: { id: string; version: number }; action: Action; decision: Decision; seen: Map<string, number> }

/** Compares an action. `seen` counts equal actions in this decision: one act confirms only one. */
export function agreedIn({ version, action, decision, seen }: ComparedAct, keyOf: KeyOf): { agreed: boolean | null } {
  if (action.action_type === 'ignore') return { agreed: agreement(action, decision, null) }
  const call = toolCallOf(action)
  const named = call && keyOf(call.tool, call.args)
  const keyed = named !== null && named.idempotence_key !== null
  const wish = JSON.stringify([version.id, version.version, keyed ? named.idempotence_key : action])
  const before = seen.get(wish) ?? 0
  seen.set(wish, before + 1)
  const matching = decision.acts.filter((act) => agreement(action, { ...decision, acts: [act] }, named) === true).length
  const comparable = agreement(action, decision, named) !== null && !(keyed && before > 0)
  return { agreed: comparable ? matching > before : null }
}

/** Calls with the same key have the same effect, however their arguments are written. */
function agreesInCall(own: CallKeys | null, calls: readonly Extract<Act, { act: 'call_tool' }>[]): boolean {
  if (own === null) return false
  return calls.some(({ idempotence_key, arguments_hash }) => {
    const keyed = own.idempotence_key !== null && idempotence_key !== null
    return keyed ? own.idempotence_key === idempotence_key : own.arguments_hash === arguments_hash
  })
}

const isAct =
  <Kind extends Act['act']>(kind: Kind) =>
  (act: Act): act is Extract<Act, { act: Kind }> =>
    act.act === kind

/**
 * Replies agree if they differ only in case, spacing, quotes, emphasis or surrounding punctuation.
 */
const normalText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[\u2010-\u2015\u2212]/g, '-')
    .split(/\s+/)
    .map((word) => word.replace(/^[*_`~#"'“”‘’„«»([]+/, '').replace(/[*_`~"'“”‘’«»)\].,!;:]+$/, ''))
    .filter((word) => word !== '' && word !== '-')
    .join(' ')
