import { skillAct, type Act } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Event } from '../../core/event.ts'
import type { SkillProposal } from './ports.ts'
import type { ProposalResult } from './result.ts'

/** The roles of a scope's agent, from the setting `blackboard.policy.roles`. */
export function agentRoles({ blackboard }: Pick<Settings, 'blackboard'>): string[] {
  const roles = blackboard.policy?.['roles']
  return Array.isArray(roles) ? roles.map(String) : ['agent']
}

const MOST_ENTITY_TYPES = 64

/** Any event may have the field; it is ignored where it is not a list of strings. */
export function entityTypesIn(events: readonly Event[]): string[] {
  const named = events.flatMap((event) => ('entity_types' in event && Array.isArray(event.entity_types) ? event.entity_types : []))
  return [...new Set(named.filter((name) => typeof name === 'string'))].slice(0, MOST_ENTITY_TYPES)
}

/** The own fields of an event's type, as JSON: they are searched for the keywords of skills. */
export function ownText({ id: _id, scope: _scope, source: _source, timestamp: _timestamp, meta: _meta, ...own }: Event): string {
  return JSON.stringify(own)
}

/** The act of a turn that a proposal was: a run, however it ended, or a request for one. */
export const actsOf = ({ skill_id, inputs }: SkillProposal, { status }: Pick<ProposalResult, 'status'>): Act[] =>
  status === 'refused' || status === 'clarify' ? [] : [skillAct(skill_id, inputs)]
