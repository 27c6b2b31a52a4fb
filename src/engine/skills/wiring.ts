import type { Lanes } from '../effects/wiring.ts'
import { BlackboardLayers } from './blackboard-layers.ts'
import { SkillRuns, type OpenRun } from './runs.ts'
import { SecretSettings } from './secret-settings.ts'
import { SkillCache } from './skill-cache.ts'
import { Skills } from './sessions.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'
import type { Job } from '../jobs.ts'
import { byteLength } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { emptyBlackboard, neededInputs } from '../../skills/plan/blackboard.ts'
import { buildBulletin, goalOf } from '../../skills/bulletin/bulletin.ts'
import { transitionPrior } from '../../skills/bulletin/transitions.ts'
import { type Bulletin } from '../../contract/skill.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { onlyReads } from '../../tools/define-tool.ts'
import { placeOf } from '../../skills/manifest/compat.ts'
import type { SkillsPageOf } from '../../contract/scope-api.ts'
import { entityTypesIn } from '../../skills/session/context.ts'

type ShownSkillsParts = Pick<Lanes, 'settings' | 'memory' | 'toolbox'> & {
  skill_cache: SkillCache
  layers: BlackboardLayers
  runs: SkillRuns
}
type ShownSkill = {
  manifest: Manifest
  /** Required inputs that the scope's blackboard does not provide. */
  needed: string[]
  /** A step may change something, by what is known of the scope's tools. */
  acts: boolean
}
type ShownSkills = { goal_labels: string[]; tau: number | undefined; skills: ShownSkill[]; more: boolean }

/** A scope's skills for the API, from the cache that its turns use. */
export class SkillViews {
  readonly #parts: ShownSkillsParts

  constructor(parts: ShownSkillsParts) {
    this.#parts = parts
  }

  async bulletin(text: string): Promise<Bulletin> {
    const { skill_cache, layers, runs, settings, memory } = this.#parts
    await skill_cache.catchUp({ at_once: true })
    const { goal_labels, goal_postconditions, k_cards: k } = settings()
    const seeded = layers.seed()
    const prior = transitionPrior(runs.transitions(), { last: runs.latest(), manifests: skill_cache.shown() })
    const goal = goalOf(goal_postconditions, seeded.ok ? seeded.blackboard : emptyBlackboard(), prior)
    const recent_success = runs.recentSuccess()
    return buildBulletin({
      index: skill_cache.index(),
      text,
      goal_labels,
      entity_types: entityTypesIn(memory.live.events),
      compat: placeOf(settings()),
      recent_success,
      goal,
      k,
    })
  }

  /**
   * Ordered by id, after `after`: at most `limit` and about a page's bytes, but at least one.
   * `only` is the id of the one that is asked for.
   */
  async page({ after, limit, only }: SkillsPageOf): Promise<ShownSkills> {
    const { skill_cache, layers, settings } = this.#parts
    await skill_cache.catchUp({ at_once: true })
    const rest = skill_cache.shown().filter(({ id }) => (only === undefined ? id > after : id === only))
    let bytes = 0
    const fitting = rest.findIndex((manifest, index) => {
      bytes += byteLength(JSON.stringify(manifest))
      return index >= limit || (index > 0 && bytes > limits.page_bytes)
    })
    const { goal_labels, tau } = settings()
    const seeded = layers.seed()
    const known = seeded.ok ? seeded.blackboard : emptyBlackboard()
    const page = fitting < 0 ? rest : rest.slice(0, fitting)
    const skills = page.map((manifest) => ({ manifest, needed: neededInputs(manifest, known), acts: this.#acts(manifest) }))
    return { goal_labels, tau, skills, more: fitting >= 0 }
  }

  /** A tool that is not known may act, whatever the manifest says. */
  #acts({ plan, effects }: Manifest): boolean {
    const { toolbox } = this.#parts
    const reads = (name: string): boolean => {
      const found = toolbox.forPlan(name)
      return found.ok && onlyReads(found.definition)
    }
    return effects.external.length > 0 || plan.steps.some(({ tool }) => !reads(tool))
  }

  async ids(): Promise<string[]> {
    const { skill_cache } = this.#parts
    await skill_cache.catchUp({ at_once: true })
    return skill_cache.shown().map(({ id }) => id)
  }
}

type RunJobParts = Pick<Lanes, 'jobs' | 'guard'> & {
  skills: Skills
  runs: SkillRuns
}

/** Resumes runs after a crash. */
function handleRuns(parts: RunJobParts): void {
  parts.jobs.handle<OpenRun>('run', {
    work: 'run',
    at_once: Infinity,
    // A run that keeps crashing its scope is compensated, then given up if that crashes it, too.
    attempts: 2 * MOST_DEATHS,
    run: (job) => resume(parts, job),
    giveUp: (job, reason) => resume(parts, job, reason),
  })
}

async function resume(
  { skills, runs, guard }: RunJobParts,
  { key: run_id, payload, attempts }: Job<OpenRun>,
  give_up?: string,
): Promise<void> {
  const { record, cause, head } = payload
  const session = await skills.sessionFor({ head, causes: [cause] })
  const stop =
    attempts > MOST_DEATHS
      ? `the run crashed its scope ${attempts - 1} times: ${guard.reason({ kind: 'run', id: run_id })}`
      : runs.isStopping(cause, run_id)
        ? 'its turn is over'
        : null
  const signal = stop === null ? undefined : AbortSignal.abort(new Error(stop))
  await session.resume(record, { ...(signal && { signal }), ...(give_up !== undefined && { give_up }) })
}

export type Skilled = Lanes & ReturnType<typeof composeSkills>

export function composeSkills(parts: Lanes) {
  const skill_cache = new SkillCache(parts)
  const runs = new SkillRuns(parts)
  const layers = new BlackboardLayers(parts)
  const skills = new Skills({ ...parts, skill_cache, runs, layers })
  handleRuns({ ...parts, skills, runs })
  const views = new SkillViews({ ...parts, skill_cache, layers, runs })
  return { skill_cache, secret_settings: new SecretSettings(skill_cache), runs, skills, views }
}
