import type { Configuration } from '../../engine/settings/change.ts'
import type { Feature } from '../../feature.ts'
import { parkedRunsOf } from '../approvals/scope/in-scope.ts'
import { Adopting } from './scope/adoption.ts'
import { eventFacts } from './scope/event-facts.ts'
import { askAgain } from './scope/ask-again.ts'
import { adoptSkill, skillGrounds } from './scope/skill-adoption.ts'
import type { LearnedSkill } from './contract/learner-api.ts'
import { learnAgain } from './events/learning.ts'
import { learnRoutes } from './http/runs.ts'
import { whyRoutes } from './http/why.ts'
import { forgetRuns } from './store/learn-runs.ts'

/** Reflexes and skills that are learned from what the slow path decided. */
export const learning: Feature = {
  name: 'learning',
  routes: () => [learnRoutes, whyRoutes],
  calls: {
    adopt: (scope, learned) => {
      const rechain: Configuration['rechain'] = (change, by) => scope.configuration.rechain(change, by)
      return new Adopting({ ...scope, rechain }).adopt(learned)
    },
    skillGrounds: async (scope) => JSON.stringify(await skillGrounds(scope)),
    adoptSkill: (scope, learned) => adoptSkill({ ...scope, parked_runs: parkedRunsOf(scope) }, JSON.parse(learned) as LearnedSkill),
    eventFacts: async (scope, event_id) => {
      const facts = await eventFacts(scope, event_id)
      return facts && JSON.stringify(facts)
    },
    askAgain: async (scope, event_ids) => JSON.stringify(await askAgain(scope, event_ids)),
  },
  sweeps: [{ name: 'starting to learn', run: learnAgain }],
  forgets: [{ name: 'learning runs', kept: 'a year', forget: forgetRuns }],
}
