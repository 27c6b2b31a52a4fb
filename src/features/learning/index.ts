import type { Configuration } from '../../engine/settings/change.ts'
import type { Feature } from '../../feature.ts'
import { parkedRunsOf } from '../approvals/scope/in-scope.ts'
import { Adopting } from './scope/adoption.ts'
import { eventFacts } from './scope/event-facts.ts'
import { askAgain } from './scope/ask-again.ts'
import { proofOf } from '../proof/scope/in-scope.ts'
import { adoptSkill, skillGrounds } from './scope/skill-adoption.ts'
import type { LearnedSkill } from './contract/learner-api.ts'
import { learnAgain } from './events/learning.ts'
import { learnRoutes } from './http/runs.ts'
import { whyRoutes } from './http/why.ts'
import { forgetRuns } from './store/learn-runs.ts'
import * as tables from './store/tables.ts'
import type { Foreseen } from '../../contract/certificate.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import type { Namespace } from '../../env.ts'
import type { Adoption, LearnedVersion, LearnerApi, SkillAdoption } from './contract/learner-api.ts'

declare module '../../env.ts' {
  interface Env {
    LEARNER: Namespace<LearnerApi>
  }
}

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /** Senders that teach the scope while nobody has set how it learns; none otherwise. */
    teachers(): Promise<string[]>
    /** Registers a learned reflex in shadow mode, in this scope's chain. Idempotent. */
    adopt(learned: LearnedVersion): Promise<Adoption>
    /** Returns SkillGrounds as JSON. */
    skillGrounds(): Promise<string>
    /** Registers a mined skill, JSON of LearnedSkill, as a candidate. Idempotent. */
    adoptSkill(learned: string): Promise<SkillAdoption>
    /**
     * Asks the slow path again, without effects, about events that turns decided on: JSON of
     * `AskedAgain[]`, at most `MOST_ASKED` events.
     */
    askAgain(event_ids: string[]): Promise<string>
    /** JSON of EventFacts: the scope's knowledge of an event and its reflexes. Null: none such. */
    eventFacts(event_id: string): Promise<string | null>
  }
}

/** Reflexes and skills that are learned from what the slow path decided. */
export const learning = {
  name: 'learning',
  routes: () => [learnRoutes, whyRoutes],
  calls: {
    adopt: (scope, learned) => {
      const rechain: Configuration['rechain'] = (change, by) => scope.configuration.rechain(change, by)
      const { certificates } = proofOf(scope)
      const begin = (version: ReflexVersion, foreseen: Foreseen) => scope.unit((unit) => certificates.begin(unit, version, foreseen))
      return new Adopting({ ...scope, rechain, begin }).adopt(learned)
    },
    teachers: async ({ features }) => features.flatMap((feature) => feature.teachers?.() ?? []),
    skillGrounds: async (scope) => JSON.stringify(await skillGrounds(scope)),
    adoptSkill: (scope, learned) => adoptSkill({ ...scope, parked_runs: parkedRunsOf(scope) }, JSON.parse(learned) as LearnedSkill),
    eventFacts: async (scope, event_id) => {
      const facts = await eventFacts(scope, event_id)
      return facts && JSON.stringify(facts)
    },
    askAgain: async (scope, event_ids) => JSON.stringify(await askAgain(scope, event_ids)),
  },
  tables,
  sweeps: [{ name: 'starting to learn', run: learnAgain }],
  forgets: [{ name: 'learning runs', kept: 'a year', forget: forgetRuns }],
} satisfies Feature
