import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest files. One that starts last would run alone. */
const LONGEST = [
  'e2e/package.test.ts',
  'e2e/kill.test.ts',
  'e2e/dashboard/views.test.ts',
  'e2e/one-url.test.ts',
  'e2e/market.test.ts',
  'e2e/traffic.test.ts',
  'e2e/dashboard/decisions.test.ts',
  'e2e/learning.test.ts',
  'e2e/dashboard/scopes.test.ts',
  'e2e/dashboard/demo.test.ts',
  'e2e/dashboard/operations.test.ts',
  'e2e/dashboard/market.test.ts',
  'e2e/docs/commands.test.ts',
  'e2e/cli.test.ts',
  'e2e/client-examples.test.ts',
  'e2e/clients.test.ts',
  'e2e/deploy.test.ts',
  'crash/journal-gaps.test.ts',
  'crash/learning-runs.test.ts',
  'crash/journal-gaps-askers.test.ts',
  'crash/packs.test.ts',
  'crash/node/market.test.ts',
  'crash/node/kill.test.ts',
  'worker/events/packs.test.ts',
  'worker/events/packs-bounds.test.ts',
  'worker/artifacts/foreign.test.ts',
  'worker/scope/reflexes/certificates.test.ts',
  'worker/learning/runs.test.ts',
  'worker/learning/lifecycle.test.ts',
  'worker/market/licences.test.ts',
  'worker/agents/chat/reflexes.test.ts',
  'worker/scope/reflexes/hostile.test.ts',
  'worker/market/ledger.test.ts',
  'worker/http/generated-requests.test.ts',
  'worker/http/auth/access.test.ts',
  'worker/scope/reflexes/reflexes.test.ts',
  'worker/tools/remote-tools.test.ts',
  'worker/scope/reflexes/audits.test.ts',
  'worker/traces/golden.test.ts',
  'worker/scope/skills/approvals.test.ts',
  'worker/events/queue.test.ts',
  'worker/http/scopes/routes.test.ts',
]
const tests = path.join(import.meta.dirname, '..')

/**
 * Files are run project by project, since a change of project starts another runtime, with those in
 * workerd first: these take longest to start. Within one, they run in the order of their duration;
 * by default, vitest orders them by size.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.indexOf(path.relative(tests, moduleId))
      return index < 0 ? LONGEST.length : index
    }
    const projects = ['crash', 'crash-node', 'worker', 'testing', 'walk', 'unit']
    const place = ({ project }: TestSpecification) => projects.indexOf(project.name)
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other) || rank(one) - rank(other))
  }
}
