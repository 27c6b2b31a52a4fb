import { sameJson, type Json, type JsonFields } from '../../src/base/json.ts'
import { learnSkills, type SkillCandidate } from '../../src/features/learning/skills/learn.ts'
import { MINING } from '../../src/features/learning/skills/mine.ts'
import { attemptAt } from '../../src/features/learning/skills/prove.ts'
import type { Trace, TracedAct } from '../../src/features/learning/skills/trace.ts'
import { evaluate } from '../../src/skills/cel/expression.ts'
import { runCase } from '../../src/skills/ci/run-case.ts'
import type { Manifest } from '../../src/skills/manifest/manifest.ts'
import { seedBlackboard } from '../../src/skills/plan/blackboard.ts'
import { compilePlan } from '../../src/skills/plan/compile.ts'
import { runPlan } from '../../src/skills/runner/run-plan.ts'
import type { RunnerPorts } from '../../src/skills/runner/ports.ts'
import { hashOf } from './draw.ts'
import { callRetail, changes, isKnown, loadRetail, retailTools, type Store, type Task } from './retail.ts'

const ROLES = ['agent']
const LEARN_EVERY = 57

export type ProceduresOptions = { rounds: number; bound: number; history: boolean }
type Counts = { turns: number; calls: number; replayed: number; runs: number; wrong: number; equal: number; broken: number }
type Made = { tool: string; input: JsonFields; output: Json; ok: boolean }
/** A skill that acts, and how its proof stood when it began to. */
type Active = { manifest: Manifest; turns: number; agreed: number }

/**
 * Serves the tasks of the retail benchmark in rounds, each in another order, to a scripted model
 * that makes the recorded calls and then speaks. What it repeats is mined every 57 turns; a skill
 * acts once the lower bound of its share on later turns is at least `bound`.
 */
export async function measureProcedures(directory: string, { rounds, bound, history }: ProceduresOptions): Promise<string> {
  const { tasks, store } = loadRetail(directory)
  const active = new Map<string, Active>()
  const told = new Map<string, string>()
  const traces: Trace[] = []
  const lines: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    const counts: Counts = { turns: 0, calls: 0, replayed: 0, runs: 0, wrong: 0, equal: 0, broken: 0 }
    for (const task of tasks.toSorted((one, other) => hashOf(`${round} ${one.id}`) - hashOf(`${round} ${other.id}`))) {
      if (traces.length % LEARN_EVERY === 0 && traces.length > 0) await learn(traces, { active, told, bound })
      traces.push(await serve(task, { at: traces.length, store, active, counts }))
    }
    lines.push(row(round + 1, counts, active.size))
  }
  const shown = Array.from(
    active.values(),
    ({ manifest, turns, agreed }) => `acts: ${stepsOf(manifest)}: ${agreed} of ${turns} later turns`,
  )
  return [...lines, ...shown, ...(history ? Array.from(told, ([what, why]) => `does not: ${what}: ${why}`) : [])].join('\n')
}

export const PROCEDURES_HEADER = `| round | turns | recorded calls | replayed by skills | runs, with a wrong call | end state equal | policy broken | skills that act |
| --- | --- | --- | --- | --- | --- | --- | --- |`

function row(round: number, { turns, calls, replayed, runs, wrong, equal, broken }: Counts, skills: number): string {
  const share = (part: number, of: number): string => `${((part / of) * 100).toFixed(1)} %`
  return `| ${[round, turns, calls, share(replayed, calls), `${runs}, ${wrong}`, share(equal, turns), broken, skills].join(' | ')} |`
}

const stepsOf = ({ plan }: Manifest): string =>
  plan.steps.map(({ tool, for_each, guard }) => `${tool}${for_each ? ' (for each)' : ''}${guard === undefined ? '' : ' (if)'}`).join(' → ')

type Learning = { active: Map<string, Active>; told: Map<string, string>; bound: number }

async function learn(traces: readonly Trace[], { active, told, bound }: Learning): Promise<void> {
  const options = { tools: retailTools, owner: 'learned', roles: ROLES, parser_model: null, seed: '1', limits: MINING }
  const trusted = new Set(['shop'])
  const { candidates, rejected } = await learnSkills(traces, { ...options, trusted, latest: (id) => active.get(id)?.manifest ?? null })
  for (const { what, reason } of rejected) told.set(what.replaceAll(/\{[^}]*\}/g, ''), reason)
  for (const { manifest, report, evidence } of candidates) {
    const { turns, agreed, low } = evidence.proof
    const reason = reasonOf({ report, evidence }, bound)
    if (reason !== null) told.set(stepsOf(manifest), reason)
    else if (!active.has(manifest.id)) active.set(manifest.id, { manifest, turns, agreed })
    if (reason === null) told.delete(stepsOf(manifest))
    else if (low < bound && turns >= 10) active.delete(manifest.id)
  }
}

function reasonOf({ report, evidence: { proof } }: Pick<SkillCandidate, 'report' | 'evidence'>, bound: number): string | null {
  if (!report.passed) return `its tests failed: ${report.failures[0]?.reason}`
  return proof.low >= bound ? null : `${proof.agreed} of ${proof.turns} later turns made the same calls`
}

type Serving = { at: number; store: Store; active: ReadonlyMap<string, Active>; counts: Counts }

/** A turn of the model on a fresh store, with the skills that act. */
async function serve(task: Task, { at, store, active, counts }: Serving): Promise<Trace> {
  const expected = structuredClone(store)
  const recorded = task.calls.map(({ tool, input }) => made(expected, tool, input))
  const own = structuredClone(store)
  const acts: TracedAct[] = []
  const seen = [task.text]
  const turn: Trace = {
    trace_id: `task-${task.id}-${at}`,
    at,
    source: 'shop',
    place: { agent: 'retail' },
    goal: { text: task.text, labels: [] },
    acts: recorded.map(traced),
    usage: { model_calls: task.calls.length + 1, tokens: 0, cost_usd: 0.01 * (task.calls.length + 1), duration_ms: 1000 },
    outcome: 'ok',
  }
  counts.turns += 1
  counts.calls += recorded.length
  for (let next = 0; next < recorded.length;) {
    const run = await propose({ turn, rest: recorded.slice(next).map(traced), seen }, { own, active })
    if (run) {
      const { calls, wanted, manifest } = run
      counts.runs += 1
      const isSame = calls.length === wanted && calls.every((call, index) => same(call, recorded[next + index]))
      if (isSame) counts.replayed += wanted
      else counts.wrong += 1
      counts.broken += calls.filter(({ tool }) => changes(tool)).length
      acts.push({ ...traced({ tool: manifest.id, input: {}, output: {}, ok: true }), kind: 'skill' })
      seen.push(...calls.map(({ output }) => JSON.stringify(output)))
      next += wanted
    } else {
      const { tool, input } = recorded[next] ?? { tool: '', input: {} }
      const call = made(own, tool, input)
      acts.push(traced(call))
      seen.push(JSON.stringify(call.output))
      next += 1
    }
  }
  if (sameJson(own, expected)) counts.equal += 1
  return { ...turn, acts: [...acts, { ...traced({ tool: '', input: {}, output: {}, ok: true }), kind: 'reply' }] }
}

const same = (one: Made, other: Made | undefined): boolean => one.tool === other?.tool && sameJson(one.input, other.input)
const traced = ({ tool, input, output, ok }: Made): TracedAct => ({
  kind: 'tool',
  name: tool,
  input,
  output,
  ok,
  cost_usd: 0,
  duration_ms: 10,
})

function made(store: Store, tool: string, input: JsonFields): Made {
  try {
    return { tool, input, output: structuredClone(callRetail(store, tool, input)), ok: true }
  } catch (error) {
    return { tool, input, output: { error: String(error) }, ok: false }
  }
}

type Proposal = { turn: Trace; rest: TracedAct[]; seen: readonly string[] }
type SkillRun = { manifest: Manifest; calls: Made[]; wanted: number }

/**
 * The model proposes the skill whose tools its next calls are, the longest first, if the gate
 * allows it and it knows each input by what the user said or an earlier call gave.
 */
async function propose({ turn, rest, seen }: Proposal, { own, active }: { own: Store; active: ReadonlyMap<string, Active> }) {
  const attempts = Array.from(active.values()).flatMap(({ manifest }) => {
    const tested = attemptAt(manifest, turn, rest)
    return tested !== null && isKnown(tested.inputs, seen) ? [{ manifest, tested }] : []
  })
  for (const { manifest, tested } of attempts.sort((one, other) => other.tested.calls.length - one.tested.calls.length)) {
    const { verdict } = await runCase(manifest, tested, { roles: ROLES, fault: null, times: 1 })
    if (verdict === 'allow')
      return { manifest, calls: await act(manifest, tested.inputs, own), wanted: tested.calls.length } satisfies SkillRun
  }
  return null
}

/** Runs a skill on the store. */
async function act(manifest: Manifest, inputs: JsonFields, own: Store): Promise<Made[]> {
  const seeded = seedBlackboard({ settings: {} })
  const compiled = seeded.ok ? compilePlan(manifest, inputs, seeded.blackboard) : null
  if (!compiled?.ok) return []
  const calls: Made[] = []
  const ports: RunnerPorts = {
    journal: { load: async () => [], begin: async () => {}, end: async () => {} },
    callTool: (tool, input) => {
      const call = made(own, tool, input)
      calls.push(call)
      return call.ok ? Promise.resolve({ output: call.output, cost_usd: 0 }) : Promise.reject(new Error('the shop refused'))
    },
    evaluate: (expression, scope) => evaluate(expression, scope),
    lastGood: async () => null,
    remember: async () => {},
    ended: async () => {},
    alone: (_, work) => work(),
    now: () => 0,
    wait: (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    log: () => {},
  }
  await runPlan({ run_id: 'run', plan: compiled.plan, ports })
  return calls
}
