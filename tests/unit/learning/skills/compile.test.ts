import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json, JsonFields } from '../../../../src/base/json.ts'
import { compilePattern, skillIdOf, type CompileOptions } from '../../../../src/features/learning/skills/compile.ts'
import { mine } from '../../../../src/features/learning/skills/mine.ts'
import { factsOf } from '../../../../src/tools/tool-facts.ts'
import type { Trace } from '../../../../src/features/learning/skills/trace.ts'
import { tokensOf } from '../../../../src/skills/manifest/names.ts'
import type { Manifest } from '../../../../src/skills/manifest/manifest.ts'
import { compilePlan, resolveStep } from '../../../../src/skills/plan/compile.ts'
import { call, times, trace } from './build-trace.ts'
import { compileOptions, deployment } from './deployments.ts'
import { assertProperty } from '../../../support/property.ts'

const options = (fields: Partial<CompileOptions> = {}): CompileOptions => ({
  ...compileOptions,
  ...fields,
})

function compiled(traces: readonly Trace[], fields: Partial<CompileOptions> = {}): Manifest {
  const [pattern] = mine(traces).patterns
  if (!pattern) throw new Error('no pattern was found')
  const result = compilePattern(pattern, options(fields))
  if (!result.ok) throw new Error(result.reason)
  return result.manifest
}
function refusal(traces: readonly Trace[], fields: Partial<CompileOptions> = {}): string | null {
  const [pattern] = mine(traces).patterns
  if (!pattern) throw new Error('no pattern was found')
  const result = compilePattern(pattern, options(fields))
  return result.ok ? null : result.reason
}

const reading = (...names: string[]) => factsOf(Object.fromEntries(names.map((name) => [name, { repeatable: true }])))
/** Turns of two reading calls, the second with these arguments. */
const looking = (
  input: (n: number) => JsonFields,
  output: (n: number) => Json = () => ({}),
  fields: (n: number) => Partial<Trace> = () => ({}),
) =>
  times(10, (n) =>
    trace(n, [call('first', { id: `id-${n}` }, { output: output(n) }), call('second', input(n))], {
      goal: { text: 'please look it up', labels: [] },
      ...fields(n),
    }),
  )
const secondArgs = (traces: Trace[]): [JsonFields | undefined, Manifest] => {
  const manifest = compiled(traces, { tools: reading('first', 'second'), others: [] })
  return [manifest.plan.steps[1]?.args, manifest]
}

describe('the deployments of the example', () => {
  const manifest = compiled(times(12, deployment))

  test('become one skill of three steps', () => {
    expect(manifest.plan.steps).toMatchObject([
      { name: 'ensure_acr', tool: 'ensure_acr', args: { registry: '{{registry}}' } },
      { name: 'docker_build_and_push', args: { registry: '{{registry}}', commit: '{{commit}}', platform: 'linux/amd64' } },
      { name: 'appservice', args: { app_name: '{{app_name}}', image_tag: '{{work.steps.docker_build_and_push.image_tag}}' } },
    ])
  })

  test('with typed inputs, bound to the blackboard where they come from it, and parsed where they were said', () => {
    expect(manifest.signature).toMatchObject({
      inputs: [
        { name: 'registry', type: 'string', required: true },
        { name: 'commit', type: 'string', required: true },
        { name: 'app_name', type: 'string', required: true },
      ],
      outputs: [{ name: 'endpoint', type: 'url' }],
      blackboard_bindings: { inputs: { registry: 'ctx.registry', commit: 'ctx.commit' } },
    })
    expect(manifest.llm_support.parsers).toEqual([
      { name: 'parse_app_name', model: 'small', temperature: 0, inputs: ['raw_text'], outputs: ['app_name'] },
    ])
  })

  test('with a key, compensation by the inverses of the tools, and what held throughout', () => {
    expect(manifest.plan.idempotence_key).toBe('{{registry}}:{{commit}}:{{app_name}}')
    expect(manifest.plan.compensation).toMatchObject([
      { step: 'ensure_acr', tool: 'remove_acr', args: { registry: '{{registry}}' } },
      { step: 'docker_build_and_push', tool: 'remove_image', args: { registry: '{{registry}}', commit: '{{commit}}' } },
      { step: 'appservice', tool: 'roll_back', args: { app_name: '{{app_name}}' } },
    ])
    expect(manifest.preconditions.invariants).toEqual(['ctx.window == "open"', 'ctx.subscription == env.subscription'])
    expect(manifest.compat).toEqual({ project: 'acme/payments', env: ['staging'] })
  })

  test('with cues from what was said, budgets from what was measured, and its origin', () => {
    expect(manifest.activation).toMatchObject({ goal_labels: ['deploy'], keywords_any: ['deploy', 'release'] })
    expect(manifest.plan.budget).toEqual({ max_cost_usd: 0.044, max_latency_ms: 12_400 })
    expect(manifest.plan.steps.map(({ timeout_ms }) => timeout_ms)).toEqual([1000, 8000, 4000])
    expect(manifest.tests.unit_cases).toEqual(times(12, (n) => `trace-${n}`))
    expect(manifest.provenance).toMatchObject({ support: 1, success: 1, mined_from_traces: times(12, (n) => `trace-${n}`) })
    expect(manifest.provenance.delta_cost).toBeLessThan(-0.4)
    expect(manifest.provenance.delta_p95).toBeLessThan(-0.4)
  })

  test('are the same skill when they are mined again, and a new version only where it differs', () => {
    const again = (count: number, change: (turn: Trace) => Trace = (turn) => turn) => {
      const [pattern] = mine(times(count, deployment).map(change)).patterns
      return pattern ? compilePattern(pattern, options({ previous: manifest })) : null
    }
    expect(again(20)).toMatchObject({ ok: true, manifest, changed: false })
    const slower = again(20, (turn) => ({ ...turn, acts: turn.acts.map((act) => ({ ...act, duration_ms: 3 * act.duration_ms })) }))
    expect(slower).toMatchObject({ changed: true, manifest: { id: manifest.id, version: '1.0.1' } })
    const elsewhere = again(20, (turn) => ({
      ...turn,
      acts: turn.acts.map((act) => ({
        ...act,
        input: { ...act.input, ...(act.input['platform'] !== undefined && { platform: `p${turn.at}` }) },
      })),
    }))
    expect(elsewhere).toMatchObject({ changed: true, manifest: { id: manifest.id, version: '1.1.0' } })
  })

  test('give arguments from which each of the turns can be done again', () => {
    for (const { acts, blackboard } of times(12, deployment)) {
      const app_name = acts[2]?.input['app_name'] ?? null
      const plan = compilePlan(manifest, { app_name }, blackboard as never)
      if (!plan.ok) throw new Error(plan.detail)
      const outputs: Record<string, Json> = {}
      for (const [index, step] of plan.plan.steps.entries()) {
        expect(resolveStep(step, plan.plan, outputs)).toEqual({ ok: true, args: acts[index]?.input })
        outputs[step.name] = acts[index]?.output as Json
      }
    }
  })
})

describe('an argument', () => {
  test('that is constant is a literal, at any depth', () => {
    const [args, manifest] = secondArgs(looking(() => ({ a: 1, b: { c: [true, 'x'] } })))
    expect(args).toEqual({ a: 1, b: { c: [true, 'x'] } })
    expect(manifest.signature.inputs.map(({ name }) => name)).toEqual(['id'])
  })

  test('that an earlier step gave is a reference, and within a text a template', () => {
    const [args] = secondArgs(
      looking(
        (n) => ({ all: `tag-${n}`, text: `built tag-${n} of ${n * 7} for id-${n}` }),
        (n) => ({ tag: `tag-${n}`, size: n * 7 + 100 }),
      ),
    )
    expect(args).toMatchObject({ all: '{{work.steps.first.tag}}', text: '{{text}}' })
    const [other] = secondArgs(
      looking(
        (n) => ({ text: `built tag-${n} for id-${n}!` }),
        (n) => ({ tag: `tag-${n}` }),
      ),
    )
    expect(other).toEqual({ text: 'built {{work.steps.first.tag}} for {{id}}!' })
  })

  test('that an effect depends on by way of an earlier output is in the key', () => {
    const tools = factsOf({ first: { repeatable: true }, second: {}, undo: { undoes: { tool: 'second', match: ['tag'] } } })
    const traces = looking(
      (n) => ({ tag: `tag-${n}` }),
      (n) => ({ tag: `tag-${n}` }),
    )
    const { plan } = compiled(traces, { tools, others: [] })
    expect([plan.steps[1]?.args, plan.idempotence_key]).toEqual([{ tag: '{{work.steps.first.tag}}' }, '{{id}}'])
  })

  test('that varies together with another one shares its input', () => {
    const [args] = secondArgs(looking((n) => ({ id: `id-${n}`, number: n, other: n })))
    expect(args).toEqual({ id: '{{id}}', number: '{{number}}', other: '{{number}}' })
  })

  test.each<[string, (n: number) => Json, string]>([
    ['whole numbers', (n) => n, 'integer'],
    ['numbers', (n) => n / 2, 'number'],
    ['addresses', (n) => `https://a.example/${n * 3}`, 'url'],
    ['lists', (n) => Array.from({ length: n }, () => 'x'), 'list'],
    ['yes and no', (n) => n % 2 === 0, 'boolean'],
  ])('that varies over %s is an input of that type', (_, value, type) => {
    const [, manifest] = secondArgs(looking((n) => ({ value: value(n) })))
    expect(manifest.signature.inputs).toMatchObject([{ name: 'id' }, { name: 'value', type }])
  })

  test('that has another shape is another call', () => {
    const traces = looking((n) => ({ value: n % 2 === 0 ? { a: 1 } : { b: 2 } }))
    expect(mine(traces).patterns.map(({ symbols }) => symbols[1])).toEqual(['second{value:{a:number}}', 'second{value:{b:number}}'])
  })

  test.each<[string, JsonFields]>([
    ['is named like a password', { password: 'constant-and-plain' }],
    ['looks like a token', { header: 'ghp_abcdefghijklmnopqrstuv' }],
    ['was masked', { key: '[redacted]' }],
    ['was masked by a hash', { key: `sha256:${'a'.repeat(64)}` }],
    ['is deep within a constant', { deep: { list: [{ client_secret: 'x' }] } }],
  ])('that %s is a secret input, and no literal', (_, secret) => {
    const [, manifest] = secondArgs(looking(() => secret))
    expect(manifest.signature.inputs).toMatchObject([{ name: 'id' }, { secret: true }])
    const [value] = Object.values(secret)
    for (const text of ['constant-and-plain', 'ghp_', 'sha256:', '[redacted]', '"x"']) expect(JSON.stringify(manifest)).not.toContain(text)
    expect(value).toBeDefined()
  })

  test('that holds a placeholder of its own is an input: it must not be filled', () => {
    const [args, manifest] = secondArgs(looking(() => ({ text: 'hello {{policy.secret}}' })))
    expect(args).toEqual({ text: '{{text}}' })
    expect(JSON.stringify(manifest)).not.toContain('policy.secret')
  })

  test('that holds fifty values of an earlier step is compiled without trying all of their orders', () => {
    const fields = (n: number) => Object.fromEntries(times(50, (index) => [`f${index}`, `value-${index}-${n}`]))
    const [args] = secondArgs(looking((n) => ({ text: Object.values(fields(n)).join(' and ') }), fields))
    expect(args).toEqual({ text: '{{text}}' })
  })

  test('with a name that means something else gets another one', () => {
    const [args] = secondArgs(looking((n) => ({ inputs: n, 'a-b c': `v${n}` })))
    expect(args).toEqual({ inputs: '{{the_inputs}}', 'a-b c': '{{a_b_c}}' })
  })
})

describe('a pattern is refused', () => {
  const undone = (n: number) =>
    trace(n, [call('first', { id: `${n}` }), call('send', { to: `a${n}` })], { goal: { text: 'send it', labels: [] } })

  test('where it reaches outside and no tool undoes it', () => {
    const tools = factsOf({ first: { repeatable: true }, send: {} })
    expect(refusal(times(10, undone), { tools, others: [] })).toBe('send has an effect outside, and no tool that undoes it is known')
  })

  test('where the inverse needs what the call does not say', () => {
    const tools = factsOf({ first: { repeatable: true }, send: {}, unsend: { undoes: { tool: 'send', match: ['message_id'] } } })
    expect(refusal(times(10, undone), { tools, others: [] })).toMatch(/^send has an effect outside/)
  })

  test('where nothing tells one run from the next', () => {
    const tools = factsOf({ a: {}, b: {}, c: { undoes: { tool: 'a', match: [] } }, d: { undoes: { tool: 'b', match: [] } } })
    expect(
      refusal(
        times(10, (n) => trace(n, [call('a'), call('b')], { goal: { text: 'go', labels: ['x'] } })),
        { tools, others: [] },
      ),
    ).toMatch(/no input tells one run from the next/)
  })

  test('where nothing that was said tells when it is useful', () => {
    expect(refusal(times(12, (n) => ({ ...deployment(n), goal: { text: '', labels: [] } })))).toMatch(/^nothing that was said/)
  })

  test('where the only word that tells is a value of most turns', () => {
    const traces = looking((n) => ({ text: n < 8 ? `look ${n}` : `see ${n}` }))
    const alone = traces.map((one) => ({ ...one, goal: { text: 'look', labels: [] } }))
    expect(refusal(alone, { tools: reading('first', 'second'), others: [] })).toMatch(/^nothing that was said/)
  })

  test('where a tool is gone', () => {
    const { tools } = options()
    const left = new Map([...tools].filter(([name]) => name !== 'remove_acr'))
    expect(refusal(times(12, deployment), { tools: left })).toMatch(/no tool called remove_acr/)
  })

  test('where its parsers cost what it saves', () => {
    const dear = (n: number) => ({ ...deployment(n), usage: { model_calls: 1, tokens: 1, cost_usd: 0.1, duration_ms: 5000 } })
    expect(refusal(times(12, dear))).toMatch(/^with 1 parsers it costs/)
  })
})

test('whatever the arguments hold, a manifest passes the checks, does the turns again, and no text of theirs becomes a template', () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.constantFrom('{{inputs.x}}', '{{work.steps.0}}', '"; DROP', '${x}', '__proto__', '{"a": {{b}}}', '}}', '{{', '\\', '\n'),
  )
  // The parser of events refuses this name.
  const name = hostile.filter((text) => text !== '__proto__')
  const fields = fc.dictionary(name, fc.oneof(hostile, fc.integer(), fc.boolean(), fc.array(hostile, { maxLength: 3 })), { maxKeys: 4 })
  assertProperty(
    'learning/skills/compile',
    fc.property(fields, fc.array(hostile, { minLength: 6, maxLength: 6 }), (constant, varying) => {
      // A word that nearly every turn has among its values tells nothing: no skill is right then.
      fc.pre(varying.filter((text) => tokensOf(text).includes('look')).length <= 4)
      const input = (n: number): JsonFields => ({ constant, varying: `${varying[n] ?? ''}${n}` })
      const traces = times(6, (n) =>
        trace(n, [call('first', { id: `id-${n}` }), call('second', input(n))], { goal: { text: 'look', labels: [] } }),
      )
      const manifest = compiled(traces, { tools: reading('first', 'second'), others: [] })
      const redone = traces.map(({ acts }, n) => {
        const given = manifest.signature.inputs.map(({ name }) => [name, valueOf(manifest, name, acts[1]?.input, `id-${n}`)])
        const plan = compilePlan(manifest, Object.fromEntries(given), { ctx: {}, env: {}, work: {}, policy: {} })
        const step = plan.ok ? plan.plan.steps[1] : undefined
        return plan.ok && step ? resolveStep(step, plan.plan, { first: {} }) : plan
      })
      expect(redone).toEqual(traces.map(({ acts }) => ({ ok: true, args: acts[1]?.input })))
    }),
    { examples: [[{}, ['{{inputs.x}}', '{{inputs.x}}', 'look ', '', '', '{{inputs.x}}']]] },
  )
})

/** The value that an input had in a turn: found by following the template next to the argument. */
function valueOf(manifest: Manifest, name: string, args: Json | undefined, id: string): Json {
  const look = (template: Json | undefined, value: Json | undefined): Json | undefined => {
    if (template === `{{${name}}}`) return value
    if (typeof template !== 'object' || template === null) return undefined
    for (const [key, part] of Object.entries(template)) {
      const found = look(part, (value as JsonFields | undefined)?.[key])
      if (found !== undefined) return found
    }
    return undefined
  }
  return look(manifest.plan.steps[0]?.args, { id }) ?? look(manifest.plan.steps[1]?.args, args) ?? null
}

test('an id depends on the pattern and its place alone', () => {
  const [pattern] = mine(times(12, deployment)).patterns
  if (!pattern) throw new Error('no pattern was found')
  expect(skillIdOf(pattern)).toMatch(/^learned\.deploy_container_appservice_[0-9a-f]{8}$/)
  expect(skillIdOf({ ...pattern, place: { project: 'other' } })).not.toBe(skillIdOf(pattern))
})
