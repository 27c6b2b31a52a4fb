import { useSignal } from '@preact/signals'
import type { ProposalReport } from '../../../../src/contract/skill.ts'
import { hasRole, part, post, type Role } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { NeedsRole, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Lines, Text, visible } from '../../ui/text.tsx'
import type { ShownInput, ShownManifest } from './manifest-type.ts'

const NEEDED: Role = 'publisher'
type Props = { id: string; version: string; manifest: ShownManifest }

/** A form made from the signature. A dry run asks the gate alone. */
export function Propose({ id, version, manifest }: Props) {
  const inputs = manifest.signature?.inputs ?? []
  const scope = useSignal('')
  const why = useSignal('')
  const values = useSignal<Record<string, string>>({})
  const wrong = useSignal<string | null>(null)
  const result = useSignal<ProposalReport | null>(null)
  const { run, busy, problem } = useAction((body: object) => post<ProposalReport>(`/v1/scopes/${part(scope.value)}/skills/propose`, body))
  const propose = async (dry_run: boolean) => {
    const parsed = parse(inputs, values.value)
    wrong.value = typeof parsed === 'string' ? parsed : null
    if (typeof parsed === 'string') return
    const answer = await run({ skill_id: `${id}@${version}`, inputs: parsed, why: why.value, dry_run })
    result.value = answer.ok ? answer.value : null
  }
  if (!hasRole(NEEDED)) return <NeedsRole role={NEEDED} what="To propose a skill" />
  return (
    <Section title="Propose a run">
      <form
        class="stack card"
        onSubmit={(event) => {
          event.preventDefault()
          void propose(event.submitter?.getAttribute('value') === 'dry')
        }}
      >
        <Field label="Scope" required value={scope.value} onInput={(text) => (scope.value = text)} />
        {inputs.map((input) => (
          <Slot
            key={input.name}
            input={input}
            value={values.value[input.name] ?? ''}
            onChange={(text) => (values.value = { ...values.value, [input.name]: text })}
          />
        ))}
        <Field label="Why: keywords are matched in it" required value={why.value} onInput={(text) => (why.value = text)} />
        {wrong.value !== null && <p role="alert">{wrong.value}</p>}
        <ErrorBox problem={problem} />
        <div class="actions">
          <button type="submit" class="primary" value="dry" disabled={busy}>
            Dry run
          </button>
          <button type="submit" value="run" disabled={busy}>
            Propose it
          </button>
        </div>
      </form>
      {result.value && <Result result={result.value} />}
    </Section>
  )
}

function Slot({
  input: { name, type, required = false, secret, description },
  value,
  onChange,
}: {
  input: ShownInput
  value: string
  onChange: (text: string) => void
}) {
  const title = `${visible(name)} (${type}${required ? ', required' : ''})`
  if (type === 'boolean')
    return <Select stacked label={title} value={value} options={{ '': 'not given', true: 'true', false: 'false' }} onChange={onChange} />
  const placeholder = description ?? (type === 'list' || type === 'object' ? 'as JSON' : '')
  return <Field label={title} value={value} placeholder={placeholder} onInput={onChange} masked={secret === true} />
}

/** The inputs by their types, or what is wrong with one. Empty fields are left out. */
function parse(inputs: readonly ShownInput[], values: Record<string, string>): Record<string, unknown> | string {
  const parsed: Record<string, unknown> = {}
  for (const { name, type } of inputs) {
    const text = values[name] ?? ''
    if (text === '') continue
    if (type === 'string' || type === 'url') parsed[name] = text
    else {
      try {
        parsed[name] = JSON.parse(text)
      } catch {
        return `${name} is not JSON of the type ${type}.`
      }
    }
  }
  return parsed
}

function Result({ result: { status, reason, dry_run, decision, questions, outputs, steps, trace_id } }: { result: ProposalReport }) {
  return (
    <div class="card" role="status">
      <p>
        <Status status={status} /> {dry_run && 'Nothing ran: this is what the gate decides.'}{' '}
        {reason !== null && <Text text={reason} most={600} />} <TraceLink id={trace_id} />
      </p>
      <ol>
        {decision.stages.map(({ stage, verdict, reason: why }) => (
          <li key={stage}>
            {stage}: <Status status={verdict} /> {why !== null && <Text text={why} most={600} />}
          </li>
        ))}
      </ol>
      {decision.to_pass.length > 0 && (
        <>
          <h3>To pass</h3>
          <Lines of={decision.to_pass} />
        </>
      )}
      {questions.map(({ slot, question }) => (
        <p key={slot}>
          <b>{visible(slot)}</b>: <Text text={question} />
        </p>
      ))}
      {steps.length > 0 && !dry_run && (
        <ol>
          {steps.map((step) => (
            <li key={step.index}>
              {visible(step.tool)} <Status status={step.status} />
            </li>
          ))}
        </ol>
      )}
      {Object.keys(outputs).length > 0 && <Json value={outputs} label="Outputs" />}
    </div>
  )
}
