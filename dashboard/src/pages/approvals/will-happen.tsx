import type { z } from 'zod'
import type { approval } from '../../../../src/contract/approval.ts'
import { hasRole, part, useGet } from '../../api/index.ts'
import { Json } from '../../ui/json.tsx'
import type { ShownCall } from '../../ui/origins.tsx'
import { Text } from '../../ui/text.tsx'

export type ShownApproval = z.infer<typeof approval>

/** The arguments of a call that waits, and why it does, which stand side by side. */
export function calledWith({ origins, named_by, anchors: _anchors, ...input }: ShownApproval['inputs']): ShownCall {
  return { input, ...({ origins, named_by } as Pick<ShownCall, 'origins' | 'named_by'>) }
}
type WaitingCall = ShownCall & { tool: string }

/** The calls of a question that waits, by their numbers from 1. */
export function callsOf({ kind, skill_id, inputs }: ShownApproval): WaitingCall[] {
  if (kind === 'call') return [{ tool: skill_id, ...calledWith(inputs) }]
  const about = kind === 'calls' ? (inputs.calls as Omit<WaitingCall, 'input'>[]) : []
  return about.map((call, index) => ({ ...call, input: inputs[index + 1] }))
}
type PlannedStep = { name?: string; tool: string; args: Record<string, unknown> }
type Skill = {
  manifest: null | {
    description: string
    effects: { writes: string[]; external: string[] }
    plan: { steps: PlannedStep[]; compensation: { tool: string; when: string }[] }
  }
}

/** The steps that an approval starts, with the inputs filled in. */
export function WillHappen({ approval }: { approval: ShownApproval }) {
  const { kind, skill_id, version, inputs } = approval
  const isRun = kind === 'run'
  const scrip = `${String(inputs.amount)} scrip`
  const { value: skill } = useGet<Skill>(isRun && hasRole('viewer') ? `/v1/skills/${part(`${skill_id}@${version}`)}` : null)
  if (kind === 'calls')
    return (
      <ol class="steps">
        {callsOf(approval).map(({ tool, input }, index) => (
          <li key={index}>
            Calls <code>{tool}</code> once <Json value={input} label={`Arguments of ${tool}`} />
          </li>
        ))}
      </ol>
    )
  if (kind === 'call' || kind === 'payment')
    return (
      <p>
        Calls <code>{skill_id}</code> once
        {kind === 'payment' && (
          <>
            : {approval.scope} gives <b>{typeof inputs.gives === 'string' ? inputs.gives : scrip}</b> to <b>{String(inputs.to)}</b>
            {typeof inputs.gives === 'string' && ` for ${scrip}`}
          </>
        )}
        .
      </p>
    )
  if (!isRun)
    return (
      <p>
        The {kind === 'promotion' ? 'reflex' : 'skill'} <b>{skill_id}</b> {version} becomes active in {approval.scope}
        {kind === 'promotion' ? ': it acts without a model call.' : ': it was mined from what the agent repeats, and passed its tests.'}
      </p>
    )
  if (!skill?.manifest)
    return (
      <p>
        Runs version {version} of <b>{skill_id}</b> once, with exactly these inputs.
      </p>
    )
  const { description, plan, effects } = skill.manifest
  return (
    <>
      <p>
        <Text text={description} most={600} />
      </p>
      <ol class="steps">
        {plan.steps.map(({ name, tool, args }, index) => (
          <li key={name ?? index}>
            <code>{tool}</code> <Json value={filled(args, inputs)} label={`Arguments of ${tool}`} />
          </li>
        ))}
      </ol>
      {plan.compensation.length > 0 && (
        <p class="quiet">
          If a later step fails, it is undone by <code>{plan.compensation.map(({ tool }) => tool).join(', ')}</code>.
        </p>
      )}
      {effects.external.length > 0 && <p class="quiet">Changes outside of Reflex: {effects.external.join(', ')}</p>}
    </>
  )
}

/** Arguments with `{{input}}` replaced, where an input is a text; other templates stay. */
function filled(value: unknown, inputs: Record<string, unknown>): unknown {
  if (typeof value === 'string')
    return value.replaceAll(/\{\{([^{}]+)\}\}/g, (template: string, name: string) => {
      const input = inputs[name.trim()]
      return typeof input === 'string' || typeof input === 'number' ? String(input) : template
    })
  if (Array.isArray(value)) return value.map((item) => filled(item, inputs))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, inputs)]))
}
