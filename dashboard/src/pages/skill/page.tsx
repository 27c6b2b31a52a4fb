import { useRoute } from 'preact-iso'
import type { z } from 'zod'
import type { skill } from '../../../../src/contract/skill.ts'
import { part, useGet, query, hasRole, post } from '../../api/index.ts'
import { Loaded, Empty, ErrorBox } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { SEALED, Text, visible, Lines } from '../../ui/text.tsx'
import { Time, duration } from '../../ui/time.tsx'
import type { ShownManifest, ShownInput, ShownStep } from './manifest-type.ts'
import { Propose } from './propose.tsx'
import { States } from '../reflex/states.tsx'
import { Versions } from '../reflex/code.tsx'
import { useSignal } from '@preact/signals'
import type { Span, TraceReport, TraceSummary } from '../../../../src/contract/reports/trace.ts'
import { TraceLink } from '../../ui/links.tsx'
import { Entries } from '../reflex/entries.tsx'
import { reasonsOf, textOf } from '../trace/spans.ts'
import type { promotion } from '../../../../src/features/control-plane/contract/promotion.ts'
import type { CiReport, skillTest } from '../../../../src/contract/reports/skill-test.ts'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { percent, usd } from '../../ui/numbers.ts'
import type { ComponentChildren } from 'preact'
import { Json } from '../../ui/json.tsx'
import { Table } from '../../ui/table.tsx'

/** A manifest as a page: when it is shown, when it may run, and the steps. */
function ManifestView({ manifest }: { manifest: ShownManifest }) {
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

type Test = z.infer<typeof skillTest>
type Promotion = z.infer<typeof promotion>

/** The latest test of a version, and the tests of its promotions. */
function Tests({ id, version }: { id: string; version: string }) {
  const ref = `${id}@${version}`
  const data = useGet<Test>(`/v1/skills/${part(ref)}/test`)
  const test = useAction(() => post<Test>(`/v1/skills/${part(ref)}/test`, {}))
  const run = async () => {
    await test.run(undefined)
    data.reload()
  }
  const untested = data.problem?.status === 404
  return (
    <>
      <Section
        title={`Test of ${visible(ref)}`}
        actions={
          hasRole('operator') && (
            <button type="button" disabled={test.busy} onClick={() => void run()}>
              {test.busy ? 'Testing …' : 'Test it'}
            </button>
          )
        }
      >
        <ErrorBox problem={test.problem} />
        {untested ? (
          <Empty title="It has not been tested.">
            <p>A test runs its cases and mutations of them through the gate and the plan. No tool is called.</p>
          </Empty>
        ) : (
          <Loaded data={data}>
            {(found) => (
              <div class="card">
                <p>
                  <Time at={found.tested_at} /> by {visible(found.by)}
                  {found.failed_in_a_row > 0 && `, failed ${found.failed_in_a_row} times in a row`}
                </p>
                <Report report={found} />
              </div>
            )}
          </Loaded>
        )}
      </Section>
      {hasRole('operator') && <Promotions id={id} />}
    </>
  )
}

function Report({ report: { passed, unit, fuzz, cases, failures, seed } }: { report: CiReport }) {
  return (
    <>
      <Facts>
        <Fact name="Result">
          <Status status={passed ? 'passed' : 'failed'} />
        </Fact>
        <Fact name={cases === 'declared' ? 'Unit cases' : 'Generated cases'}>
          {unit.passed} of {unit.n}, {percent(unit.required)} needed
        </Fact>
        <Fact name="Mutations">
          {fuzz.passed} of {fuzz.n}, {percent(fuzz.required)} needed
        </Fact>
        <Fact name="How">Simulated: no tool was called, in no environment</Fact>
        <Fact name="Seed">{visible(seed)}</Fact>
      </Facts>
      {failures.length > 0 && <Lines of={failures.map(({ kind, name, reason }) => `${kind} ${name}: ${reason}`)} />}
    </>
  )
}

function Promotions({ id }: { id: string }) {
  const list = usePages<Promotion>(`/v1/promotions${query({ skill_id: id, limit: 50 })}`)
  return (
    <Section title="Promotions to environments">
      <ErrorBox problem={list.problem} onRetry={list.reload} />
      {list.items?.length === 0 && <p class="quiet">No promotion was asked for.</p>}
      {list.items?.map(({ id: key, version, from_env, to_env, status, created_at, requested_by, decided_by, reports }) => (
        <div class="card" key={key}>
          <p>
            {visible(version)} from {visible(from_env)} to {to_env.map(visible).join(', ')}: <Status status={status} />, asked for by{' '}
            {visible(requested_by)} <Time at={created_at} />
            {decided_by !== null && `, decided by ${visible(decided_by)}`}
          </p>
          {Object.entries(reports).map(([env, report]) => (
            <details key={env}>
              <summary>
                Test in {visible(env)}: {report.passed ? 'passed' : 'failed'}
              </summary>
              <Report report={report} />
            </details>
          ))}
        </div>
      ))}
    </Section>
  )
}

type Need = string | { message: string }
type Stage = { stage: string; status: string; checks: { check: string; passed: boolean; detail: string }[] }
type ShownDecision = { verdict: string; stages: Stage[]; to_pass?: Need[]; needs?: Need[]; score: { score: number; tau?: number } | null }
type SkillLogEntry = {
  seq: number
  at: string
  trace_id: string
  span_id: string
  skill_id: string
  version: string
  why: string
  dry_run: boolean
  decision: ShownDecision
}

/** The latest proposals of a skill in a scope: what the gate decided, and the run step by step. */
function Activity({ id }: { id: string }) {
  const traces = useGet<{ items: TraceSummary[] }>(`/v1/traces${query({ skill: id, limit: 100 })}`)
  return (
    <Section title="Gate decisions and runs">
      <Loaded data={traces}>
        {({ items }) => (
          <Entries<SkillLogEntry>
            scopes={[...new Set(items.flatMap(({ scopes }) => scopes))]}
            kinds={{ 'skill-decided': 'Gate decisions' }}
            match={({ skill_id }) => skill_id === id}
          >
            {(entries) => entries.map((entry) => <Proposal key={entry.seq} entry={entry} />)}
          </Entries>
        )}
      </Loaded>
    </Section>
  )
}

function Proposal({ entry: { at, trace_id, span_id, skill_id, version, why, dry_run, decision } }: { entry: SkillLogEntry }) {
  const isOpen = useSignal(false)
  const refused = decision.stages.find(({ status }) => status === 'failed')
  const reasons = refused?.checks.filter(({ passed }) => !passed).map(({ check, detail }) => `${check}: ${detail}`) ?? []
  return (
    <article class="card" aria-label={`Proposal of version ${version}`}>
      <p>
        <Time at={at} /> <Status status={decision.verdict} />
        {refused && (
          <>
            {' '}
            at the stage <b>{refused.stage}</b>
          </>
        )}
        {decision.score && `, score ${decision.score.score}`}
        {dry_run && ', a dry run'} · version {visible(version)} · “<Text text={why} most={160} />”{' '}
        <TraceLink id={trace_id} span={span_id} />
      </p>
      {reasons.length > 0 && <Lines of={reasons} />}
      <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>The run, step by step</summary>
        {isOpen.value && <Runs trace_id={trace_id} gate={span_id} skill_id={skill_id} />}
      </details>
    </article>
  )
}

function Runs({ trace_id, gate, skill_id }: { trace_id: string; gate: string; skill_id: string }) {
  const data = useGet<TraceReport>(`/v1/traces/${trace_id}`)
  return (
    <Loaded data={data}>
      {({ root }) => {
        const [run] = runsAfter(root, { gate, skill_id })
        return run ? <Run span={run} trace_id={trace_id} /> : <p class="quiet">It did not run.</p>
      }}
    </Loaded>
  )
}

/** The runs of a skill below its gate, or beside it. */
function runsAfter(span: Span, of: { gate: string; skill_id: string }): Span[] {
  const place = span.children.findIndex(({ span_id }) => span_id === of.gate)
  if (place < 0) return span.children.flatMap((child) => runsAfter(child, of))
  const isRun = (one: Span) => one.kind === 'run' && textOf(one, 'gen_ai.skill.name') === of.skill_id
  const below = (one: Span): Span[] => [...(isRun(one) ? [one] : []), ...one.children.flatMap(below)]
  return [...below(span.children[place] as Span), ...span.children.slice(place + 1).filter(isRun)]
}

function Run({ span, trace_id }: { span: Span; trace_id: string }) {
  return (
    <>
      <p>
        <Status status={textOf(span, 'reflex.run.status') ?? 'running'} />
        {span.duration_ms !== null && ` in ${duration(span.duration_ms)}`} <Text text={reasonsOf(span).join('; ')} most={400} />{' '}
        <TraceLink id={trace_id} span={span.span_id} text="Show" />
      </p>
      <ol>
        {span.children.map((step) => (
          <li key={step.span_id}>
            {visible(step.name)}: <code>{visible(textOf(step, 'gen_ai.tool.name') ?? '')}</code>{' '}
            <Status status={textOf(step, 'reflex.step.status') ?? step.status} />
            {step.duration_ms !== null && <span class="quiet"> {duration(step.duration_ms)}</span>}{' '}
            <Text text={reasonsOf(step).join('; ')} />
          </li>
        ))}
      </ol>
    </>
  )
}

type Skill = z.infer<typeof skill>

const tabs = [
  { id: 'manifest', text: 'Manifest' },
  { id: 'activity', text: 'Gate and runs' },
  { id: 'tests', text: 'Tests' },
  { id: 'versions', text: 'Versions' },
  { id: 'propose', text: 'Propose' },
]

export default function SkillPage() {
  const id = useRoute().params['id'] ?? ''
  const data = useGet<Skill>(`/v1/skills/${part(id)}`)
  return (
    <Page title={visible(id)} path={<a href="/skills">Skills</a>}>
      <Loaded data={data}>{(found) => <Shown skill={found} reload={data.reload} />}</Loaded>
    </Page>
  )
}

function Shown({
  skill: { id, version, state, state_reason, owner, scopes, provenance, created_at, versions, manifest, findings = [] },
  reload,
}: {
  skill: Skill
  reload: () => void
}) {
  const tab = useTab(tabs.map((one) => one.id))
  const shown = manifest as ShownManifest | null
  return (
    <>
      <div class="card">
        <p>
          <Text text={shown ? (shown.description ?? 'It has no description.') : SEALED} most={1000} />
        </p>
        <Facts>
          <Fact name="Version">
            {visible(version)} <Status status={state} />
          </Fact>
          {state_reason !== null && (
            <Fact name="Because">
              <Text text={state_reason} />
            </Fact>
          )}
          <Fact name="Owner">{visible(owner)}</Fact>
          <Fact name="Acts in">{scopes.map(visible).join(', ')}</Fact>
          <Fact name="Registered">
            <Time at={created_at} /> by {visible(provenance.by)}
            {provenance.run !== undefined && (
              <>
                , <a href={`/learning?run=${part(provenance.run)}`}>learned</a>
              </>
            )}
          </Fact>
          {provenance.forced && (
            <Fact name="Activated without passing tests">
              by {visible(provenance.forced.by)}: <Text text={provenance.forced.reason} />
            </Fact>
          )}
        </Facts>
        {findings.length > 0 && (
          <>
            <h2>What its author hardly meant</h2>
            <Lines of={findings.map(({ path, message, example }) => `${path}: ${message}. For example: ${example}`)} />
          </>
        )}
      </div>
      <Tabs label="Parts of this skill" tabs={tabs} />
      {tab === 'manifest' && shown && <ManifestView manifest={shown} />}
      {tab === 'activity' && <Activity id={id} />}
      {tab === 'tests' && <Tests id={id} version={version} />}
      {tab === 'versions' && (
        <>
          <States kind="skill" id={id} versions={versions} reload={reload} />
          <Section title="Manifests">
            <Versions kind="skills" id={id} versions={versions} />
          </Section>
        </>
      )}
      {tab === 'propose' && shown && <Propose id={id} version={version} manifest={shown} />}
    </>
  )
}
