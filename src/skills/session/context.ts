import { mapJson, type Json, type JsonFields } from '../../base/json.ts'
import type { Anchor } from '../../contract/settings/anchors.ts'
import type { Place } from '../manifest/compat.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { Blackboard, BlackboardChange, Seeded, SeedNotes } from '../plan/blackboard.ts'
import { isSecretReference } from '../plan/template.ts'
import type { PolicyMode, SessionEntry, SessionPorts, SkillProposal } from './ports.ts'
import { skillAct, type Act } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Event } from '../../core/event.ts'
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

export const MOST_PROPOSALS = 8
/** Skills within skills, by way of tools that start turns of their own. */
export const DEEPEST_CHAIN = 3

export type SessionSettings = {
  trace_id: string
  place: Place
  /** From `seedBlackboard`; it is logged as the session begins, and never seeded again. */
  seeded: Pick<Extract<Seeded, { ok: true }>, 'blackboard' | 'sources' | 'overridden'> & SeedNotes
  goal_labels?: readonly string[] | undefined
  entity_types?: readonly string[] | undefined
  k_cards?: number | undefined
  /** Effects that the work is to reach, as manifests name them: they break ties between skills. */
  goal_postconditions?: readonly string[] | undefined
  /** The share of what its cues can score that a skill without a `tau` of its own must reach. */
  tau?: number | undefined
  policy_mode?: PolicyMode | undefined
  /** Patterns of skills that the scope refuses. */
  refused_skills?: readonly string[] | undefined
  /** Resources on which a run asks a person. */
  anchors?: readonly Anchor[] | undefined
  /** The skills within which this turn was started, outermost first. */
  ancestors?: readonly string[]
  max_proposals?: number
  /** Places on the blackboard whose values are never logged: see `secretPathsOf`. */
  secret_paths?: readonly string[]
}

export class SessionContext {
  readonly ports: SessionPorts
  readonly settings: SessionSettings
  #blackboard: Blackboard
  #revision = 0

  constructor(settings: SessionSettings, ports: SessionPorts) {
    this.ports = ports
    this.settings = settings
    this.#blackboard = settings.seeded.blackboard
  }

  get blackboard(): Blackboard {
    return this.#blackboard
  }

  /** The number of writes: a decision names the revision that it was made over. */
  get revision(): number {
    return this.#revision
  }

  keep(blackboard: Blackboard): void {
    this.#blackboard = blackboard
    this.#revision += 1
  }

  log(kind: string, fields: JsonFields): void {
    this.ports.log(this.entry(kind, fields))
  }

  entry(kind: string, fields: JsonFields): SessionEntry {
    return { ...(this.ports.redact(fields) as JsonFields), kind, trace_id: this.settings.trace_id }
  }

  logSeed(): void {
    const { seeded, secret_paths = [] } = this.settings
    const hide = (path: string, value: Json): Json => withoutSecrets(value, path, secret_paths)
    const blackboard = hide('', seeded.blackboard)
    const { sources, ages_ms = {}, omitted = {} } = seeded
    const overridden = seeded.overridden.map((change): Json => hiddenChange(change, hide))
    this.log('blackboard-seeded', { revision: this.#revision, blackboard, sources, ages_ms, omitted, overridden })
  }
}

export function secretPathsOf({ signature: { inputs, blackboard_bindings } }: Manifest): string[] {
  return inputs.flatMap(({ name, secret }) => {
    const path = Object.hasOwn(blackboard_bindings.inputs, name) ? blackboard_bindings.inputs[name] : undefined
    return secret && path !== undefined ? [path] : []
  })
}

function hiddenChange({ path, change, before, after }: BlackboardChange, hide: (path: string, value: Json) => Json): Json {
  return { path, change, before: hide(path, before), after: hide(path, after) }
}

/** Masks the values at these paths, except for references to secrets, whose names are public. */
export function withoutSecrets(value: Json, path: string, secret_paths: readonly string[]): Json {
  if (secret_paths.length === 0) return value
  const within: (string | number)[] = path === '' ? [] : [path]
  const visit = (inner: unknown): unknown => {
    const at = within.join('.')
    if (!secret_paths.some((secret) => at === secret || at.startsWith(`${secret}.`))) return inner
    return isSecretReference(inner) ? { ...inner } : '[secret]'
  }
  return mapJson(value, visit, { path: within }) as Json
}
