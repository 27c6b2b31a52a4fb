import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DEFAULT_AGREEMENT } from '../../src/contract/agreement.ts'
import { compile } from '../../cli/sandbox/compile.ts'
import { QuickJsSandbox } from '../../src/reflexes/quickjs-sandbox.ts'
import { inputs } from './inputs.ts'
import { type Counts, measure, type Result } from './measure.ts'
import { INTENTS_HEADER, intentNames, measureIntents } from './intents.ts'
import { measureProcedures, PROCEDURES_HEADER } from './procedures.ts'
import { measureServed, servedItems } from './served.ts'
import { recordedTeachers } from './recorded.ts'
import { type Labels, measureTable, servedTable, tableNames, TABLE_HEADER } from './tables.ts'

const usage = `npm run bench:learning -- --data DIR [--input NAME]… [--noise SHARE]… [--json] [--code] [--history]

Serves public inputs in time order to a scope that learns reflexes (docs/learning.md). DIR holds the files.
  --input NAME    ${Object.keys(inputs).join(', ')}; all unless set
  --noise SHARE   of the teacher's answers that are wrong; 0, 0.01 and 0.03 unless set
  --bound SHARE   of decisions that must agree, as learning.min_agreement; ${DEFAULT_AGREEMENT} unless set
  --events N      of each input, the first ones; all unless set
  --table NAME    ${tableNames.join(', ')}: measures trees alone, without a scope
  --intents NAME  ${intentNames.join(', ')}: measures a scorer of texts alone, without a scope
  --procedures    skills from the retail tasks of tau2-bench, of which DIR holds tasks.json and db.json
  --served        the inputs or the table through the real local server, with an agent that talks
  --taught N      events before those that are measured; 3,200 unless set
  --measured N    1,200 unless set
  --every N       events between runs of learning; 400 unless set
  --recorded      decisions of real models, of which DIR holds the recorded runs
  --rounds N      of the tasks, 4 unless set
  --labels KIND   of the tables: real, chance or swapped (the two most frequent ones, half of the test)
  --json          everything
  --code          the code of the reflexes that act at the end, too
  --history       promotions, drifts and refusals, too`

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    input: { type: 'string', multiple: true, default: Object.keys(inputs) },
    noise: { type: 'string', multiple: true, default: ['0', '0.01', '0.03'] },
    audit: { type: 'string', default: '0.02' },
    events: { type: 'string' },
    bound: { type: 'string', default: String(DEFAULT_AGREEMENT) },
    table: { type: 'string', multiple: true },
    intents: { type: 'string', multiple: true },
    procedures: { type: 'boolean', default: false },
    served: { type: 'boolean', default: false },
    taught: { type: 'string', default: '3200' },
    measured: { type: 'string', default: '1200' },
    every: { type: 'string', default: '400' },
    recorded: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '4' },
    labels: { type: 'string', default: 'real' },
    json: { type: 'boolean', default: false },
    code: { type: 'boolean', default: false },
    history: { type: 'boolean', default: false },
  },
})

const HEADER = `| input | noise | no teacher needed | agreement | calls per 100 before | after | exact cache | masked cache | run | learning |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

const RECORDED_HEADER = `| teacher | runs | decisions | a further answer to an equal text differs | proven | decided without the teacher | contradicted |
| --- | --- | --- | --- | --- | --- | --- |`

const { data, table, intents } = options
if (data === undefined) console.log(usage)
else if (options.served) await runServed(data)
else if (options.recorded) await runRecorded(data)
else if (options.procedures) await runProcedures(data)
else if (table) runTables(data, table)
else if (intents) runIntents(data, intents)
else await run(data)

async function runServed(directory: string): Promise<void> {
  const { taught, measured, every, bound, history, labels } = options
  const named = table ? table.map((name) => [name, () => servedTable(name, directory, labels as Labels)] as const) : []
  const all = table ? named : options.input.map((name) => [name, () => servedItems((inputs[name] ?? noInput(name))(directory))] as const)
  for (const [name, items] of all) {
    const given = { taught: Number(taught), measured: Number(measured), every: Number(every), bound: Number(bound) }
    const { lines, parts } = await measureServed(items(), given, (line) => history && console.error(line))
    console.log([name, ...(history ? lines : []), ...parts.map((part) => JSON.stringify(part))].join('\n'))
  }
}

const noInput = (name: string): never => {
  throw new Error(`there is no input ${name}`)
}

function runTables(directory: string, names: readonly string[]): void {
  console.log(TABLE_HEADER)
  for (const name of names) console.log(measureTable(name, directory, options.labels as Labels))
}

/** The teacher contradicts a decision of a reflex that differs from the recorded run. */
async function runRecorded(directory: string): Promise<void> {
  console.log(RECORDED_HEADER)
  for (const teacher of recordedTeachers(directory)) {
    const { name, runs, items, asked_again, first_differs } = teacher
    const result = await measure(new QuickJsSandbox(sandboxModule(), { now: computed }), teacher, {
      noise: 0,
      audit: Number(options.audit),
      agreement: Number(options.bound),
    })
    const [decided, agreed] = [result.first_half, result.second_half].reduce(([n, k], half) => [n + half.decided, k + half.agreed], [0, 0])
    const promoted = result.history.filter((line) => line.includes('proven')).length
    const noise = `${first_differs} of ${asked_again} (${percent(first_differs, asked_again)})`
    const cells = [name, runs, items.length, noise, promoted, percent(decided, items.length), `${decided - agreed} of ${decided}`]
    console.log([`| ${cells.join(' | ')} |`, ...(options.history ? [...result.history, ...result.refused] : [])].join('\n'))
  }
}

async function runProcedures(directory: string): Promise<void> {
  const { rounds, bound, history } = options
  console.log(PROCEDURES_HEADER)
  console.log(await measureProcedures(directory, { rounds: Number(rounds), bound: Number(bound), history }))
}

function runIntents(directory: string, names: readonly string[]): void {
  console.log(INTENTS_HEADER)
  for (const name of names) console.log(measureIntents(name, directory, new QuickJsSandbox(sandboxModule())))
}

function sandboxModule(): WebAssembly.Module {
  return compile(readFileSync(join(import.meta.dirname, '../../src/reflexes/engine/sandbox.wasm')))
}

/** Milliseconds that this process has computed: a busy machine neither ends a run nor slows it. */
function computed(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function run(directory: string): Promise<void> {
  const wasm = sandboxModule()
  const results: Result[] = []
  if (!options.json) console.log(HEADER)
  for (const name of options.input) {
    const load = inputs[name] ?? noInput(name)
    for (const noise of options.noise) {
      const result = await measure(new QuickJsSandbox(wasm, { now: computed }), load(directory), {
        noise: Number(noise),
        audit: Number(options.audit),
        agreement: Number(options.bound),
        ...(options.events !== undefined && { events: Number(options.events) }),
      })
      results.push(result)
      if (!options.json) console.log(shown(result))
    }
  }
  if (options.json) console.log(JSON.stringify(results, null, 2))
}

function shown(result: Result): string {
  const { input, noise, first_half, second_half, exact_cache, masked_cache, run_us, learn_ms, history, refused, code } = result
  const cells = [
    input,
    `${noise * 100} %`,
    percent(second_half.decided, second_half.events),
    percent(second_half.agreed, second_half.decided),
    ((first_half.calls / first_half.events) * 100).toFixed(0),
    ((second_half.calls / second_half.events) * 100).toFixed(1),
    cacheText(exact_cache),
    cacheText(masked_cache),
    run_us === null ? '–' : `${run_us} µs`,
    `${(learn_ms / 1000).toFixed(1)} s`,
  ]
  const more = [...(options.history ? [...history, ...refused.map((line) => `refused: ${line}`)] : []), ...(options.code ? code : [])]
  return [`| ${cells.join(' | ')} |`, ...more].join('\n')
}

function cacheText({ events, decided, agreed }: Counts): string {
  return `${percent(decided, events)}, ${percent(agreed, decided)} right`
}

function percent(part: number, of: number): string {
  return of === 0 ? '–' : `${((part / of) * 100).toFixed(1)} %`
}
