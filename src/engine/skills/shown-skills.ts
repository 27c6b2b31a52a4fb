import { byteLength } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { emptyBlackboard, neededInputs } from '../../skills/plan/blackboard.ts'
import { buildBulletin, goalOf } from '../../skills/bulletin/bulletin.ts'
import { transitionPrior } from '../../skills/bulletin/transitions.ts'
import { type Bulletin } from '../../contract/skill.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { placeOf } from '../../skills/manifest/compat.ts'
import type { SkillsPageOf } from '../../contract/scope-api.ts'
import type { BlackboardLayers } from './blackboard-layers.ts'
import type { SkillRuns } from './runs.ts'
import { entityTypesIn } from '../../skills/session/context.ts'
import type { SkillCache } from './skill-cache.ts'
import type { Lanes } from '../effects/wiring.ts'

type ShownSkillsParts = Pick<Lanes, 'settings' | 'memory' | 'toolbox'> & {
  skill_cache: SkillCache
  layers: BlackboardLayers
  runs: SkillRuns
}
export type ShownSkill = {
  manifest: Manifest
  /** Required inputs that the scope's blackboard does not provide. */
  needed: string[]
  /** A step may change something, by what is known of the scope's tools. */
  acts: boolean
}
export type ShownSkills = { goal_labels: string[]; tau: number | undefined; skills: ShownSkill[]; more: boolean }

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
    const { toolbox, settings } = this.#parts
    const reads = (name: string): boolean => {
      const found = toolbox.forPlan(name)
      return (
        found.ok &&
        (found.definition.repeatable === true || settings().http_tools.some((tool) => tool.name === name && tool.method === 'GET'))
      )
    }
    return effects.external.length > 0 || plan.steps.some(({ tool }) => !reads(tool))
  }

  async ids(): Promise<string[]> {
    const { skill_cache } = this.#parts
    await skill_cache.catchUp({ at_once: true })
    return skill_cache.shown().map(({ id }) => id)
  }
}
