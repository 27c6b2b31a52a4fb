import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The shortest files first: the first test that fails ends a run. */
class ShortestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toReversed()
  }
}

/** Unit tests alone, for Stryker; `cli/mutate/areas.ts` says which. */
const test = {
  include: (process.env.MUTATE_TESTS ?? '').split(' '),
  tags: [{ name: 'simulation' }, { name: 'sources' }, { name: 'timed' }],
  // The type has it for the command line alone.
  tagsFilter: ['!simulation && !sources && !timed'],
  // Fewer values for each property: most breaks are found by a few, or by none.
  env: { VITE_PROPERTY_TIMES: '0.1' },
  isolate: false,
  sequence: { sequencer: ShortestFirst },
  testTimeout: 300_000,
  execArgv: ['--disable-warning=ExperimentalWarning'],
}

export default defineConfig({ resolve: { tsconfigPaths: true }, test })
