import { actionsIn, type Action } from './action.ts'

/** An act of a decision, as an episode has it. */
type NamedAct = { kind: 'tool' | 'reply' | 'skill' | 'emit' | 'note'; name: string }

const AND = ' + '
const OR = ' or '
const NO_ACT = 'nothing'

/**
 * The name of a decision without its arguments, such as `label + reply`: certificates prove it, and
 * bounds are set for it. A tool has its own name, as have a reply, a note and nothing; any other
 * name has a space.
 */
export const actName = (acts: readonly NamedAct[]): string => (acts.length === 0 ? NO_ACT : acts.map(nameOf).join(AND))

/** The same of what a reflex returned. */
export function actNameOf(action: Action): string {
  if (action.action_type !== 'sequence' || !action.branches) return actionsIn(action).map(nameOfAction).join(AND)
  const { acts, branches } = action
  const nameIn = (own: typeof acts): string => (own.length === 0 ? NO_ACT : actNameOf({ action_type: 'sequence', acts: own }))
  return branchingName(
    nameIn(acts),
    branches.map((branch) => nameIn(branch.acts)),
  )
}

/** The name of a decision with branches in any order, such as `find + refund or reply`. */
export const branchingName = (first: string, branches: readonly string[]): string =>
  `${first}${AND}${Array.from(new Set(branches)).sort().join(OR)}`

/** The names of the acts of a decision. */
export const partsOfAct = (act: string): string[] => act.split(AND).flatMap((part) => part.split(OR))

function nameOf({ kind, name }: NamedAct): string {
  if (kind === 'tool') return name
  return kind === 'reply' || kind === 'note' ? kind : `${kind} ${name}`
}

function nameOfAction(action: Action): string {
  switch (action.action_type) {
    case 'call_tool':
      return action.tool
    case 'reply':
      return nameOf({ kind: 'reply', name: '' })
    case 'set_scratch':
      return nameOf({ kind: 'note', name: action.key })
    case 'run_skill':
      return nameOf({ kind: 'skill', name: action.skill_id })
    case 'emit_event':
      return nameOf({ kind: 'emit', name: action.event.type })
    case 'ignore':
      return NO_ACT
    case 'write_artifact':
    case 'invoke_artifact':
    case 'sequence':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return `does ${action.action_type}`
}
