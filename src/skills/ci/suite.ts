import { z } from 'zod'
import { fromZod } from '../../contract/problem.ts'
import { isJsonFields, type JsonFields } from '../../base/json.ts'
import type { Tools } from '../../tools/tool-facts.ts'
import type { Place } from '../manifest/compat.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { CiOptions } from './ci.ts'
import { absentInputs, argumentErrors, type ToolInputs } from './arguments.ts'
import type { UnitCase } from './run-case.ts'
import { sampleBlackboard, sampleOf } from './samples.ts'

const GENERATED = 3

const fields = z.record(z.string().max(128), z.json())
const names = z.array(z.string().max(256)).max(64)

/** A case as an author writes it: in the manifest, or sent with a test. */
export const unitCase = z.strictObject({
  name: z.string().min(1).max(256).optional(),
  inputs: fields.describe('The inputs of the run.'),
  blackboard: z
    .strictObject({ ctx: fields.optional(), env: fields.optional(), work: fields.optional(), policy: fields.optional() })
    .optional(),
  text: z.string().max(20_000).optional().describe('The conversation, for keywords. By default all keywords.'),
  goal_labels: names.optional().describe('By default those of the manifest.'),
  entity_types: names.optional().describe('By default those of the manifest.'),
  place: z
    .strictObject({ env: names, toolset: z.string().nullable(), repo: z.string().nullable(), project: z.string().nullable() })
    .partial()
    .optional()
    .describe('By default the place that the manifest is for.'),
  calls: z
    .array(
      z.strictObject({
        tool: z.string().max(128),
        input: fields,
        output: z.json().default({}),
        cost_usd: z.number().min(0).default(0),
        duration_ms: z.number().min(0).default(1),
      }),
    )
    .max(64)
    .optional()
    .describe('The calls that the run must make, in order, with their outputs.'),
  steps: fields.optional().describe('Outputs by step. Others are made up from what the manifest reads.'),
  probes: fields.optional().describe('The answer of each probe.'),
  verdict: z
    .enum(['allow', 'deny', 'needs_approval', 'refused', 'clarify'])
    .optional()
    .describe('What the gate must answer. Default: allow.'),
  outputs: fields.optional().describe('Outputs that the run must have.'),
})
export type SentCase = z.infer<typeof unitCase>
type Suite = Omit<CiOptions, 'seed'> & { lacking: { name: string; reason: string }[] }

/**
 * The cases of a manifest: its own, and the cases of `sent` that it names. If it has none, they are
 * generated. `tools`: the tools that are known; `inputs`: what they take, where that is known. What
 * the manifest cannot give to them fails the test.
 */
export function suiteOf(
  manifest: Manifest,
  { sent, tools, inputs = new Map() }: { sent: readonly SentCase[]; tools: Tools; inputs?: ToolInputs },
): Suite {
  const { unit_cases } = manifest.tests
  const lacking: Suite['lacking'] = []
  const declared = unit_cases.flatMap((one, index): UnitCase[] => {
    const name = typeof one === 'string' ? one : typeof one['name'] === 'string' ? one['name'] : `unit case ${index + 1}`
    const found = typeof one === 'string' ? sent.find((other) => other.name === one) : writtenCase(one)
    const parsed = unitCase.safeParse(found)
    if (parsed.success) return [wholeCase(manifest, name, parsed.data)]
    const [error] = fromZod(parsed.error)
    const reason = found === undefined ? 'the manifest names it, and it was not sent' : `${error?.path}: ${error?.message}`
    lacking.push({ name, reason })
    return []
  })
  const cases = unit_cases.length > 0 ? declared : generatedCases(manifest)
  const wrong = argumentErrors(manifest, inputs).map(({ path, message }) => ({ name: path, reason: message }))
  return {
    cases,
    lacking,
    misfits: [...absentInputs(manifest), ...wrong],
    repeatable: repeatableTools(manifest, tools),
    roles: manifest.policy.allow_roles ?? [],
  }
}

/** No input can be called `inputs`: without that field, the case consists of its inputs. */
const writtenCase = (one: JsonFields): unknown => (isJsonFields(one['inputs']) ? one : { inputs: one })

function wholeCase(manifest: Manifest, name: string, sent: SentCase): UnitCase {
  const { activation } = manifest
  const { text, goal_labels, entity_types, place = {}, blackboard, calls = [], steps, probes, verdict, outputs } = sent
  return {
    name,
    inputs: sent.inputs,
    blackboard: (blackboard ?? sampleBlackboard(manifest)) as UnitCase['blackboard'],
    text: text ?? activation.keywords_any.join(' '),
    goal_labels: goal_labels ?? activation.goal_labels,
    entity_types: entity_types ?? activation.entity_types,
    place: placeFor(manifest, place),
    calls: calls,
    ...(steps && { steps: steps }),
    ...(probes && { probes: probes }),
    ...(verdict && { verdict }),
    ...(outputs && { outputs: outputs }),
  }
}

const placeFor = ({ compat }: Manifest, { env, toolset, repo, project }: NonNullable<SentCase['place']>): Place => ({
  env: env ?? compat.env?.slice(0, 1) ?? [],
  toolset: toolset ?? compat.toolset ?? null,
  repo: repo ?? compat.repo ?? null,
  project: project ?? compat.project ?? null,
})

/**
 * Inputs by their types, in a situation in which all conditions hold: such a case tests the plan,
 * the slots and the roles.
 */
function generatedCases(manifest: Manifest): UnitCase[] {
  return Array.from({ length: GENERATED }, (_, index) => {
    const inputs = manifest.signature.inputs.map(({ name, type }) => [name, sampleOf(type, index + 1, name)] as const)
    const written = wholeCase(manifest, `generated case ${index + 1}`, { inputs: Object.fromEntries(inputs) })
    return { ...written, assumes_conditions: true }
  })
}

/**
 * The tools whose calls need not be undone: all but those that a compensation is for, or that are
 * known to act and to have an inverse. A skill without external effects has none that act.
 */
function repeatableTools({ plan, effects }: Manifest, tools: Tools): Set<string> {
  const isUndone = (name: string | undefined, index: number): boolean =>
    plan.compensation.some(({ step }) => step === undefined || step === index || step === name)
  const acting = new Set(
    plan.steps.flatMap(({ name, tool }, index) => {
      const facts = tools.get(tool)
      return facts?.repeatable !== true && (isUndone(name, index) || facts?.inverse) ? [tool] : []
    }),
  )
  const calls = plan.steps.map(({ tool }) => tool)
  return new Set(calls.filter((tool) => effects.external.length === 0 || !acting.has(tool)))
}
