import * as fc from 'fast-check'

/**
 * The seed of each property. A property finds the same values in each run of `npm test`, so that
 * a run that fails fails again. `npm run test:properties` looks for others: its seed is random. CI
 * has the fixed seed and one of the commit in one run.
 */
export const SEEDS = {
  'base/parse-json: a cut': 354226308,
  'base/parse-json: any text': 897634529,
  'base/secrets': 1481263197,
  'base/semantic-version': 897712762,
  'cli/send-lines': 1363651996,
  'cli/streams': 603994828,
  'contract/scope-pattern: by its definition': 1028860423,
  'contract/scope-pattern: within another': 1810926990,
  'contract/scope-pattern: overlap': 463887276,
  'store/packs: any steps': 1902847711,
  'store/packs: any steps in three databases': 1362070553,
  'store/packs: any steps with an archive': 1503928417,
  'store/packs: format': 740128839,
  'core/event-store: any steps': 2125410162,
  'core/event-store: well again': 1702167181,
  'core/scoped-locks': 1019297214,
  'expressions/work: any expression': 1734853900,
  'expressions/work: split': 2068488541,
  'http/body/parse-events: any body': 1100491400,
  'http/body/parse-events: accepted events': 394237834,
  'kernel/lazy-tables': 1604280931,
  'learning/branches: as decided': 1820374451,
  'learning/conditions': 1473920655,
  'learning/hostile-text: skills': 1084659957,
  'learning/hostile-text: reflexes': 1132901324,
  'learning/read-episodes': 506927180,
  'learning/scorer/pieces': 1746203981,
  'learning/scorer/pack: points': 391846275,
  'learning/scorer/pack: damage': 1220571366,
  'learning/scorer/tree-pack': 804415723,
  'learning/slots': 731204415,
  'learning/skills/compile': 1693083665,
  'learning/skills/mine': 6830359,
  'market/ledger': 30325367,
  'market/departures': 1147706215,
  'receipts: any change': 1804289383,
  'receipts: any change of an archive': 846930886,
  'reflexes/metrics: one list': 796816700,
  'reflexes/metrics: several lists': 2003125781,
  'reflexes/sequence: values': 1904417733,
  'reflexes/random-programs: contained': 1257056389,
  'reflexes/random-programs: seen by the check': 919533432,
  'scope/follower': 690417253,
  'scope/log': 148744957,
  'skills/asp/parse: any text': 311217841,
  'skills/asp/parse: any message': 1704567334,
  'skills/bulletin/bulletin': 1613447856,
  'skills/bulletin/score: adding a word': 498758910,
  'skills/bulletin/score: adding a keyword': 1978895472,
  'skills/bulletin/skill-index': 499708602,
  'skills/cel/expression': 1490178685,
  'skills/gate/gate': 90914618,
  'skills/manifest-fuzz: a place': 938140931,
  'skills/manifest-fuzz: a whole': 2142246382,
  'skills/plan/blackboard': 2137547291,
  'skills/plan/template': 1586319865,
  'tools/key-text': 1655068787,
  'expressions/pattern': 861774920,
  'tools/origins: words': 730195823,
  'tools/origins: texts': 1290476151,
  'traces/recording: a flipped bit': 1879133067,
  'traces/recording: a cut': 873529950,
  'traces/redact': 1322613901,
  'traces/tree': 948844742,
  'http/statistics': 73164881,
  'learning/episodes': 2054638850,
  'scope/past-context': 706370395,
  'scope/money': 1310458077,
  'base/byte-length: the length': 2057738976,
  'base/byte-length: a cut': 1948548101,
  'base/byte-length: several texts': 301439264,
  'market/delivered-if-paid: any steps': 1,
  'market/delivered-if-paid: crashes': 50715283,
  'http/auth/ticket': 1316594022,
  'skills/model/held-text: held': 2144543005,
  'skills/model/held-text: streamed': 960211764,
} as const satisfies Record<string, number>

/**
 * `cli/properties.ts` sets both: a seed for this run, and by how much it is longer. `.ci/run` sets
 * several seeds, of which 0 stands for the fixed ones.
 */
const { VITE_PROPERTY_SEED = '0', VITE_PROPERTY_TIMES = '1' } = import.meta.env
const DEFAULT_RUNS = 100
/**
 * The search for the least values that fail ends then: for a list of long texts it would take
 * longer than all other tests. As long as CI lets a test take, so that no other bound is narrower.
 */
const MOST_TIME_MS = 120_000

/** The seeds by which this run draws what has a fixed seed. */
export const seedsOf = (fixed: number): number[] => VITE_PROPERTY_SEED.split(',').map((seed) => fixed ^ Number(seed))

type Runs<Values> = Omit<fc.Parameters<Values>, 'seed' | 'path'>

/** It throws the values for which the property does not hold. Tests have no other way. */
export function assertProperty<Values>(name: keyof typeof SEEDS, property: fc.IProperty<Values>, runs?: Runs<Values>): void
export function assertProperty<Values>(name: keyof typeof SEEDS, property: fc.IAsyncProperty<Values>, runs?: Runs<Values>): Promise<void>
export function assertProperty<Values>(
  name: keyof typeof SEEDS,
  property: fc.IRawProperty<Values>,
  { numRuns = DEFAULT_RUNS, ...others }: Runs<Values> = {},
): Promise<void> | void {
  const times = Number(VITE_PROPERTY_TIMES)
  const interruptAfterTimeLimit = MOST_TIME_MS * Math.max(1, times)
  // A shorter run asks whether it fails, as mutation testing does, and not for the least values.
  const limits = { interruptAfterTimeLimit, markInterruptAsFailure: true, endOnFailure: times < 1 }
  const given = { ...limits, ...others, numRuns: Math.ceil(numRuns * times) }
  // Other seeds beside the fixed one look further in each run of CI: half as long is enough.
  const runsOf = (nth: number) => Math.ceil(given.numRuns / (nth === 0 ? 1 : 2))
  const [first, ...more] = seedsOf(SEEDS[name]).map((seed, nth) => () => fc.assert(property, { ...given, numRuns: runsOf(nth), seed }))
  let checked = first?.()
  for (const check of more) checked = checked === undefined ? check() : checked.then(check)
  return checked
}
