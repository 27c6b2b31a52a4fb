import { testSkill } from '../../src/skills/ci/ci.ts'
import { compilePattern } from '../../src/features/learning/skills/compile.ts'
import { mine, type Pattern } from '../../src/features/learning/skills/mine.ts'
import { factsOf } from '../../src/tools/tool-facts.ts'
import type { TracedAct, Trace } from '../../src/features/learning/skills/trace.ts'
import { unitHash } from '../../src/evidence/draw.ts'
import type { Figure } from '../figure.ts'

const TRACES = 10_000
const CALLS = 20
const TOOLS = 30

/** Calls by chance, and in every third turn the three calls of a deployment. */
function traceOf(n: number): Trace {
  const chance = Array.from({ length: CALLS }, (_, index) =>
    callOf(`tool-${Math.floor(unitHash(`${n} ${index}`) ** 2 * TOOLS)}`, { id: n }),
  )
  const registry = `registry-${n % 3}`
  const image = `${registry}/app:${n}`
  const deployment = [
    callOf('ensure_acr', { registry }),
    callOf('docker_build_and_push', { registry, commit: `${n}` }, { image }),
    callOf('deploy', { app: `app-${n % 7}`, image }),
  ]
  return {
    trace_id: `trace-${n}`,
    at: n,
    place: { agent: 'deploy', project: 'acme/payments' },
    goal: { text: n % 3 === 0 ? 'deploy it' : 'look something up', labels: [] },
    acts: n % 3 === 0 ? [...chance.slice(0, 5), ...deployment, ...chance.slice(8)] : chance,
    usage: { model_calls: 5, tokens: 5000, cost_usd: 0.1, duration_ms: 5000 },
    outcome: unitHash(`outcome ${n}`) < 0.98 ? 'ok' : 'failed',
  }
}

const callOf = (name: string, input: TracedAct['input'], output: TracedAct['input'] = {}): TracedAct => ({
  kind: 'tool',
  name,
  input,
  output,
  ok: true,
  cost_usd: 0.001,
  duration_ms: 10,
})

const history = (count: number): Trace[] => Array.from({ length: count }, (_, n) => traceOf(n))
const isDeployment = ({ symbols: [first = ''] }: Pattern): boolean => first.startsWith('ensure_acr')

export const miningFigure: Figure = {
  name: 'mining',
  what: 'patterns of 10,000 turns of 20 calls (a tenth with --quick)',
  unit: 'ms',
  target: { at_most: 5000 },
  ours(_reflex, { count }) {
    const traces = history(count(TRACES))
    return Promise.resolve({
      measure() {
        const start = performance.now()
        const { patterns } = mine(traces)
        const ms = performance.now() - start
        if (!patterns.some(isDeployment)) throw new Error('the deployment was not found')
        return Promise.resolve(ms)
      },
    })
  },
}

export const skillTests: Figure = {
  name: 'skill-tests',
  what: 'a learned skill, compiled and tested: 20 cases and 52 mutations',
  unit: 'ms',
  target: { at_most: 2000 },
  ours() {
    const traces = history(600)
    const pattern = mine(traces).patterns.find(isDeployment)
    if (!pattern) throw new Error('the deployment was not found')
    const undoing = (tool: string, ...match: string[]) => ({ undoes: { tool, match } })
    const tools = factsOf({
      ensure_acr: {},
      docker_build_and_push: {},
      deploy: {},
      remove_acr: undoing('ensure_acr', 'registry'),
      remove_image: undoing('docker_build_and_push', 'registry', 'commit'),
      roll_back: undoing('deploy', 'app'),
    })
    return Promise.resolve({
      async measure() {
        const start = performance.now()
        const roles = ['operator']
        const others = traces.filter(({ goal }) => goal?.text !== 'deploy it')
        const compiled = compilePattern(pattern, { tools, others, owner: 'bench', roles, parser_model: null, previous: null })
        if (!compiled.ok) throw new Error(compiled.reason)
        const { manifest, cases } = compiled
        const { passed, failures } = await testSkill(manifest, { cases, repeatable: new Set(), roles, seed: '1' })
        if (!passed) throw new Error(failures[0]?.reason)
        return performance.now() - start
      },
    })
  },
}
