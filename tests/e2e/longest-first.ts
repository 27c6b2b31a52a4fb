import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The longest files. One that starts last would run alone. */
const LONGEST = [
  'package.test.ts',
  'market.test.ts',
  'kill.test.ts',
  'dashboard/scopes.test.ts',
  'dashboard/views.test.ts',
  'dashboard/market.test.ts',
  'dashboard/decisions.test.ts',
  'traffic.test.ts',
  'learning.test.ts',
  'cli.test.ts',
  'clients.test.ts',
  'browser.test.ts',
]

/** Files are run in the order of their duration; by default, vitest orders them by size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.indexOf(path.relative(import.meta.dirname, moduleId))
      return index < 0 ? LONGEST.length : index
    }
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other))
  }
}
