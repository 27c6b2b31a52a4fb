import { sameJson, type Json, type JsonFields } from '../../base/json.ts'
import { evaluate } from '../cel/expression.ts'
import type { GateRequest, GateVerdict } from '../gate/decision.ts'
import type { Place } from '../manifest/compat.ts'
import { decide } from '../gate/gate.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { seedBlackboard, type Blackboard } from '../plan/blackboard.ts'
import { compilePlan, type CompiledPlan, unrolledSteps } from '../plan/compile.ts'
import type { JournalEntry, RunnerPorts, RunResult, ToolOptions } from '../runner/ports.ts'
import { runPlan } from '../runner/run-plan.ts'
import { sampleOutput } from './samples.ts'

/** A call as it was recorded: a test answers with it, and calls nothing. */
export type RecordedCall = { tool: string; input: JsonFields; output: Json; cost_usd: number; duration_ms: number }
export type UnitCase = {
  name: string
  inputs: JsonFields
  blackboard: Partial<Blackboard>
  text: string
  goal_labels: readonly string[]
  entity_types?: readonly string[]
  place: Place
  /** The calls that a run must make, with their outputs; empty if they are not known. */
  calls: readonly RecordedCall[]
  /** Outputs by the name or the index of the step; others are made up. */
  steps?: JsonFields
  probes?: JsonFields
  /** The expected verdict, `allow` by default. After `needs_approval` it is approved and run. */
  verdict?: GateVerdict
  /** Outputs of the run that must be as given. */
  outputs?: JsonFields
  /** Assumes that the manifest's conditions hold, since the case names no situation. */
  assumes_conditions?: boolean
}
/** At the step of this index: the tool refuses, hangs after its effect, or is slow. */
type Fault = { step: number; kind: 'refuses' | 'hangs' | 'slow' }
/** `times`: the number of runs, under one key if the skill has one. */
export type Circumstances = { roles: readonly string[]; fault: Fault | null; times: number }
export type Effect = { tool: string; input: JsonFields }
/** `effects`: the calls that happened, in order, those that compensate included. */
export type CaseResult = {
  verdict: GateVerdict
  /** Null if it was not run. */
  status: RunResult['status'] | 'not_compiled' | null
  reason: string
  outputs: JsonFields
  effects: Effect[]
}

const SLOWER = 20

/** Runs a case through the gate and the runner, on recorded outputs and a clock of its own. */
export async function runCase(tests: Manifest, tested: UnitCase, { roles, fault, times }: Circumstances): Promise<CaseResult> {
  const manifest = tested.assumes_conditions ? withoutConditions(tests) : tests
  const seeded = seedBlackboard({ settings: tested.blackboard })
  const nothing = { status: null, outputs: {}, effects: [] }
  if (!seeded.ok) return { verdict: 'refused', reason: seeded.detail, ...nothing }
  const { plan, preconditions } = manifest
  const request: GateRequest = {
    manifest,
    state: 'active',
    compat: tested.place,
    inputs: tested.inputs,
    inputs_from: 'caller',
    text: tested.text,
    goal_labels: tested.goal_labels,
    entity_types: tested.entity_types ?? [],
    blackboard: seeded.blackboard,
    tools: [...preconditions.tools_available, ...[...plan.steps, ...plan.compensation].map(({ tool }) => tool)],
    recent_success: tested.assumes_conditions ?? false,
    roles,
    last_run_at: null,
    running: 0,
    probes: {
      origin: () => 'user',
      ...Object.fromEntries(Object.entries(tested.probes ?? {}).map(([name, answer]) => [name, () => answer])),
    },
    now: 0,
  }
  const { verdict, reason } = decide(request)
  const is_approved =
    verdict === 'needs_approval' && tested.verdict === verdict && decide({ ...request, approved: true }).verdict === 'allow'
  if (verdict !== 'allow' && !is_approved) return { verdict, reason, ...nothing }
  const compiled = compilePlan(manifest, tested.inputs, seeded.blackboard)
  if (!compiled.ok) return { verdict, reason: compiled.detail, ...nothing, status: 'not_compiled' }
  const world = new TestWorld(manifest, tested, fault)
  const results: RunResult[] = []
  for (let run = 0; run < times; run += 1) results.push(await world.run(`run-${run}`, compiled.plan))
  const last = results.at(-1)
  return {
    verdict,
    reason: last?.detail ?? '',
    status: last?.status ?? null,
    outputs: last?.outputs ?? {},
    effects: world.effects,
  }
}

/** Roles and required inputs are conditions of every run, and stay. */
const withoutConditions = ({ preconditions, policy: { residency: _residency, ...policy }, plan, ...manifest }: Manifest): Manifest => ({
  ...manifest,
  preconditions: { ...preconditions, invariants: [] },
  policy: { ...policy, deny_if: [], needs_approval_if: [] },
  plan: { ...plan, steps: plan.steps.map(({ guard: _guard, ...step }) => step) },
})

/** Ports over recorded calls, with a virtual clock. */
class TestWorld {
  readonly effects: Effect[] = []
  readonly #manifest: Manifest
  /** The place in the manifest of each step of a run. */
  readonly #places: readonly number[]
  readonly #tested: UnitCase
  readonly #fault: Fault | null
  readonly #good = new Map<string, JsonFields>()
  readonly #journal = new Map<string, JournalEntry>()
  #timers: { at: number; fire: () => void }[] = []
  #now = 0

  constructor(manifest: Manifest, tested: UnitCase, fault: Fault | null) {
    this.#manifest = manifest
    this.#places = unrolledSteps(manifest.plan).map(({ place }) => place)
    this.#tested = tested
    this.#fault = fault
  }

  async run(run_id: string, plan: CompiledPlan): Promise<RunResult> {
    this.#journal.clear()
    const state = { over: false }
    const running = runPlan({ run_id, plan, ports: this.#ports() }).finally(() => (state.over = true))
    while (!state.over) {
      await settled()
      if (!state.over) this.#tick()
    }
    return running
  }

  #tick(): void {
    const [next] = this.#timers.toSorted((one, other) => one.at - other.at)
    if (!next) return
    this.#timers = this.#timers.filter((timer) => timer !== next)
    this.#now = Math.max(this.#now, next.at)
    next.fire()
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = { at: this.#now + ms, fire: resolve }
      this.#timers.push(timer)
      signal.addEventListener('abort', () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
        reject(new Error('the wait was stopped'))
      })
    })
  }

  async #call(tool: string, input: JsonFields, { signal }: ToolOptions, index: number): Promise<{ output: unknown; cost_usd: number }> {
    const same = this.#tested.calls.filter((call) => call.tool === tool)
    const recorded = same.find((call) => sameJson(call.input, input)) ?? same[0]
    const kind = this.#fault?.step === index ? this.#fault.kind : null
    if (kind === 'refuses') throw new Error(`${tool} answered 404`)
    this.effects.push({ tool, input })
    const slower = kind === 'slow' ? SLOWER : 1
    await this.#wait(kind === 'hangs' ? Number.MAX_SAFE_INTEGER : (recorded?.duration_ms ?? 1) * slower, signal)
    return { output: recorded?.output ?? this.#made(index), cost_usd: recorded?.cost_usd ?? 0 }
  }

  /** The output of a step that was not recorded. A step that compensates gives nothing. */
  #made(index: number): Json {
    const name = this.#manifest.plan.steps[index]?.name ?? String(index)
    const given = this.#tested.steps ?? {}
    return given[name] ?? given[String(index)] ?? (index < 0 ? {} : sampleOutput(this.#manifest, index))
  }

  #ports(): RunnerPorts {
    let step = -1
    const nameOf = ({ phase, index }: { phase: string; index: number }): string => `${phase} ${index}`
    return {
      journal: {
        load: () => Promise.resolve([...this.#journal.values()]),
        begin: (_, begun) => {
          step = begun.phase === 'step' ? (this.#places[begun.index] ?? -1) : -1
          this.#journal.set(nameOf(begun), { phase: begun.phase, index: begun.index, begun, end: null })
          return Promise.resolve()
        },
        end: (_, place, end) => {
          this.#journal.set(nameOf(place), { ...place, begun: this.#journal.get(nameOf(place))?.begun ?? null, end })
          return Promise.resolve()
        },
      },
      callTool: (tool, input, options) => this.#call(tool, input, options, step),
      evaluate: (expression, scope) => evaluate(expression, scope),
      lastGood: (key) => Promise.resolve(this.#good.has(key) ? { outputs: this.#good.get(key) ?? null, detail: null } : null),
      remember: (key, outputs) => Promise.resolve(void this.#good.set(key, outputs)),
      ended: () => Promise.resolve(),
      alone: (_, work) => work(),
      now: () => this.#now,
      wait: (ms, signal) => this.#wait(ms, signal),
      log: () => {},
    }
  }
}

/** More than the promises that the runner chains between two waits. */
const CHAINED = 100

async function settled(): Promise<void> {
  for (let turn = 0; turn < CHAINED; turn += 1) await Promise.resolve()
}
