import { evaluate } from '../../../src/skills/cel/expression.ts'
import type { JsonFields } from '../../../src/base/json.ts'
import type { Manifest } from '../../../src/skills/manifest/manifest.ts'
import { compilePlan } from '../../../src/skills/plan/compile.ts'
import { runPlan } from '../../../src/skills/runner/run-plan.ts'
import type { JournalEntry, LastGood, RunEntry, RunnerPorts, RunResult, ToolOptions } from '../../../src/skills/runner/ports.ts'
import { deployManifest } from './deploy-manifest.ts'

export type Effect = { tool: string; args: JsonFields; key: string | null }
export type Tool = (args: JsonFields, options: ToolOptions & { world: World }) => unknown

export class Retryable extends Error {
  readonly retryable = true
}

/** Storage, effects and a clock that survive a process, and a process that may die anywhere. */
export class World {
  readonly journal = new Map<string, JournalEntry>()
  readonly good = new Map<string, JsonFields>()
  readonly effects: Effect[] = []
  /** The keys under which a run was alone. */
  readonly alone: string[] = []
  readonly log: RunEntry[] = []
  tools: Record<string, Tool> = {}
  /** The answer for a key whose outputs are not in `good`. */
  other: LastGood | { not_free: string } | null = null
  time = 0
  /** The number of places, and the one at which the process dies. */
  places = 0
  dies_at = Infinity
  #timers: { at: number; fire: () => void }[] = []
  #died = Promise.withResolvers<'died'>()

  /** Runs the plan until it ends or the process dies; a second call restarts the process. */
  async run(manifest: Manifest, { inputs = {}, signal }: { inputs?: JsonFields; signal?: AbortSignal } = {}): Promise<RunResult | 'died'> {
    const compiled = compilePlan(manifest, inputs, { ctx: {}, env: {}, work: { flag: true }, policy: {} })
    if (!compiled.ok) throw new Error(compiled.detail)
    this.#timers = []
    this.#died = Promise.withResolvers()
    const running = runPlan({ run_id: 'run-1', plan: compiled.plan, ports: this.#ports(), ...(signal ? { signal } : {}) })
    const ended = Promise.race([running, this.#died.promise])
    const state = { over: false }
    void ended.finally(() => (state.over = true)).catch(() => null)
    while (!state.over) {
      await new Promise((resolve) => setImmediate(resolve))
      if (!state.over) this.#tick()
    }
    return ended
  }

  /** A place where the process may die. From there on nothing of it happens. */
  async place(): Promise<void> {
    this.places += 1
    if (this.places < this.dies_at) return
    this.#died.resolve('died')
    await new Promise(() => {})
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = { at: this.time + ms, fire: resolve }
      this.#timers.push(timer)
      signal?.addEventListener('abort', () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
        reject(new Error('aborted'))
      })
    })
  }

  #tick(): void {
    const [next] = this.#timers.toSorted((left, right) => left.at - right.at)
    if (!next) return
    this.#timers = this.#timers.filter((timer) => timer !== next)
    this.time = Math.max(this.time, next.at)
    next.fire()
  }

  async #write(write: () => void): Promise<void> {
    await this.place()
    write()
    await this.place()
  }

  #ports(): RunnerPorts {
    const nameOf = ({ phase, index }: { phase: string; index: number }) => `${phase} ${index}`
    return {
      journal: {
        load: () => Promise.resolve([...this.journal.values()]),
        begin: (_, begun) =>
          this.#write(() => this.journal.set(nameOf(begun), { phase: begun.phase, index: begun.index, begun, end: null })),
        end: (_, place, end, told) =>
          this.#write(() => {
            this.journal.set(nameOf(place), { ...place, begun: this.journal.get(nameOf(place))?.begun ?? null, end: structuredClone(end) })
            this.log.push(told)
          }),
      },
      callTool: async (tool, args, options) => {
        await this.place()
        const answer = await this.tools[tool]?.(args, { ...options, world: this })
        this.effects.push({ tool, args, key: options.idempotence_key })
        await this.place()
        const cost_usd = typeof args['cost'] === 'number' ? args['cost'] : 0
        return { output: answer ?? { done: tool }, cost_usd }
      },
      evaluate: (expression, scope) => evaluate(expression, scope),
      lastGood: (key) => Promise.resolve(this.good.has(key) ? { outputs: this.good.get(key) ?? null, detail: null } : this.other),
      remember: (key, outputs) => this.#write(() => this.good.set(key, outputs)),
      ended: (_, told) => this.#write(() => this.log.push(told)),
      alone: (key, work) => {
        this.alone.push(key)
        return work()
      },
      now: () => this.time,
      wait: (ms, signal) => this.wait(ms, signal),
      log: (entry) => this.log.push(entry),
    }
  }
}

const compensation = (name: string) => ({ when: 'partial_failure', tool: `undo_${name}`, args: {}, step: name })

/** Three steps, each with what undoes it. */
export function threeSteps(changes: Record<string, unknown> = {}): Manifest {
  const names = ['first', 'second', 'third']
  return deployManifest({
    signature: {
      inputs: [{ name: 'who', type: 'string' }],
      outputs: [{ name: 'answer', type: 'string' }],
      blackboard_bindings: { outputs: { answer: 'work.answer' } },
    },
    'plan.idempotence_key': undefined,
    'plan.budget': { max_cost_usd: 1, max_latency_ms: 10_000 },
    'plan.steps': names.map((name) => ({ name, tool: name, args: {}, timeout_ms: 1000 })),
    'plan.compensation': names.map(compensation),
    'plan.result_map': { answer: '{{work.steps.third.done}}' },
    'activation.required_slots': [],
    ...changes,
  })
}

export const toolsOf = ({ effects }: World): string[] => effects.map(({ tool }) => tool)
