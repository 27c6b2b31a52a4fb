import type { ComponentChildren } from 'preact'
import { Json } from '../../ui/json.tsx'
import { percent, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { duration } from '../../ui/time.tsx'
import { TraceLink } from '../../ui/links.tsx'
import type { ShownInput, ShownManifest, ShownStep } from './manifest-type.ts'

/** A manifest as a page: when it is shown, when it may run, and the steps. */
export function ManifestView({ manifest }: { manifest: ShownManifest }) {
  const { signature = {}, plan = {}, provenance = {} } = manifest
  const { steps = [], compensation = [], budget, idempotence_key } = plan
  return (
    <>
      <Section title="When it runs">
        <div class="card">
          <Conditions manifest={manifest} />
        </div>
      </Section>
      <Section title="What it takes and gives">
        <Slots label="Inputs" slots={signature.inputs ?? []} from={signature.blackboard_bindings?.inputs ?? {}} />
        <Slots label="Outputs" slots={signature.outputs ?? []} from={signature.blackboard_bindings?.outputs ?? {}} />
      </Section>
      <Section title="What it does">
        <div class="card">
          <ol>
            {steps.map((step, index) => (
              <li key={index}>
                <StepView step={step} />
              </li>
            ))}
          </ol>
          {compensation.length > 0 && (
            <>
              <h3>If a later step fails</h3>
              <ul>
                {compensation.map((step, index) => (
                  <li key={index}>
                    <StepView step={step} />
                    {step.step !== undefined && <span class="quiet"> undoes {visible(String(step.step))}</span>}
                  </li>
                ))}
              </ul>
            </>
          )}
          <Facts>
            {budget && (
              <Fact name="Budget">
                {usd(budget.max_cost_usd)} and {duration(budget.max_latency_ms)}
              </Fact>
            )}
            <Fact name="Runs once for each">{idempotence_key === undefined ? 'proposal' : <code>{visible(idempotence_key)}</code>}</Fact>
            <Fact name="Changes outside">{list(manifest.effects?.external)}</Fact>
            <Fact name="Writes to the blackboard">{list(manifest.effects?.writes)}</Fact>
          </Facts>
        </div>
      </Section>
      {provenance.mined_from_traces && provenance.mined_from_traces.length > 0 && <Learned provenance={provenance} />}
      <details>
        <summary>The manifest as JSON</summary>
        <Json value={manifest} open={2} label="Manifest" />
      </details>
    </>
  )
}

function Conditions({ manifest: { compat = {}, preconditions = {}, activation = {}, policy = {} } }: { manifest: ShownManifest }) {
  const { keywords_any, goal_labels, entity_types, tau, cooldown_s = 0, max_concurrency = 1, score_weights = {} } = activation
  const places = Object.entries(compat).map(([name, value]) => `${name} ${String(value)}`)
  const weights = Object.entries(score_weights).filter(([, weight]) => weight > 0)
  return (
    <Facts>
      <Fact name="Where">{list(places, 'anywhere')}</Fact>
      <Fact name="Needs tools">{list(preconditions.tools_available)}</Fact>
      <Fact name="Needs data">{list([...new Set([...(preconditions.data_present ?? []), ...(activation.required_slots ?? [])])])}</Fact>
      <Fact name="Must hold">{codes(preconditions.invariants, 'nothing')}</Fact>
      <Fact name="Keywords">{list(keywords_any)}</Fact>
      <Fact name="Goals and entities">{list([...(goal_labels ?? []), ...(entity_types ?? [])])}</Fact>
      <Fact name="Score">
        {weights.map(([name, weight]) => `${name.replaceAll('_', ' ')} ${weight}`).join(', ') || 'no cues'}
        {tau !== undefined && `; at least ${tau}`}
      </Fact>
      <Fact name="Roles">{list(policy.allow_roles, 'nobody may run it')}</Fact>
      <Fact name="Denied if">{codes(policy.deny_if)}</Fact>
      <Fact name="A person approves it if">{codes(policy.needs_approval_if)}</Fact>
      {(policy.needs_approval_if?.length ?? 0) > 0 && (
        <Fact name="Approval">
          within {duration((policy.approval_within_s ?? 86_400) * 1000)}
          {policy.self_approval ? ', also by the proposer' : ', by somebody else'}
        </Fact>
      )}
      <Fact name="Pace">
        {max_concurrency} at a time{cooldown_s > 0 && `, ${cooldown_s} s apart`}
      </Fact>
    </Facts>
  )
}

const list = (values: readonly string[] | undefined, none = 'nothing'): ComponentChildren =>
  values && values.length > 0 ? values.map(visible).join(', ') : <span class="quiet">{none}</span>

const codes = (expressions: readonly string[] = [], none = 'never'): ComponentChildren =>
  expressions.length === 0 ? <span class="quiet">{none}</span> : expressions.map((text) => <code key={text}>{visible(text)} </code>)

function StepView({ step: { name, tool, args = {}, guard, retry, timeout_ms } }: { step: ShownStep }) {
  return (
    <>
      {name !== undefined && <b>{visible(name)}: </b>}
      calls <code>{visible(tool)}</code>{' '}
      {Object.keys(args).length > 0 && (
        <>
          with <Text text={JSON.stringify(args)} most={400} />
        </>
      )}
      {guard !== undefined && (
        <>
          , if <code>{visible(guard)}</code>
        </>
      )}
      <span class="quiet">
        {timeout_ms !== undefined && ` (at most ${duration(timeout_ms)}`}
        {retry && `, up to ${retry.max_attempts} attempts`}
        {timeout_ms !== undefined && ')'}
      </span>
    </>
  )
}

function Slots({ label, slots, from }: { label: string; slots: readonly ShownInput[]; from: Record<string, string> }) {
  if (slots.length === 0) return <p class="quiet">It has no {label.toLowerCase()}.</p>
  return (
    <Table
      label={label}
      rows={slots}
      keyOf={({ name }) => name}
      columns={[
        { title: label, cell: ({ name, required }) => `${visible(name)}${required ? ' (required)' : ''}` },
        { title: 'Type', cell: ({ type, secret }) => `${type}${secret ? ', secret' : ''}`, width: 9 },
        { title: 'Blackboard', of: ({ name }) => from[name] ?? '', width: 12 },
        { title: 'Description', of: ({ description }) => description ?? '' },
      ]}
    />
  )
}

const MOST_TRACES = 20

function Learned({ provenance: { mined_from_traces = [], support, success } }: { provenance: NonNullable<ShownManifest['provenance']> }) {
  return (
    <Section title="Learned from">
      <p>
        {mined_from_traces.length} turns
        {support !== undefined && `, ${percent(support)} of all`}
        {success !== undefined && `; ${percent(success)} ended well`}:{' '}
        {mined_from_traces.slice(0, MOST_TRACES).map((trace) => (
          <span key={trace}>
            <TraceLink id={trace} text={trace.slice(0, 8)} />{' '}
          </span>
        ))}
      </p>
    </Section>
  )
}
