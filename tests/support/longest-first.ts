import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest files. One that starts last would run alone. */
const LONGEST = [
  'e2e/package.test.ts',
  'e2e/market.test.ts',
  'e2e/kill.test.ts',
  'e2e/dashboard/scopes.test.ts',
  'e2e/dashboard/views.test.ts',
  'e2e/dashboard/market.test.ts',
  'e2e/dashboard/decisions.test.ts',
  'e2e/traffic.test.ts',
  'e2e/learning.test.ts',
  'e2e/cli.test.ts',
  'e2e/clients.test.ts',
  'e2e/browser.test.ts',
  'worker/artifacts/foreign.test.ts',
  'worker/scope/reflexes/hostile.test.ts',
  'worker/traces/golden.test.ts',
  'worker/learning/lifecycle.test.ts',
  'worker/scope/archive.test.ts',
  'worker/agents/chat/reflexes.test.ts',
  'worker/traces/traces.test.ts',
  'worker/scope/reflexes/batches.test.ts',
  'worker/scope/reflexes/certificates.test.ts',
  'worker/http/scopes/routes.test.ts',
  'worker/scope/services.test.ts',
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
