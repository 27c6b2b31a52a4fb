import { lazy, useRoute } from 'preact-iso'
import type { z } from 'zod'
import type { reflex, Decision } from '../../../../src/contract/reflex.ts'
import type { shownCertificate } from '../../../../src/contract/certificate.ts'
import { reflexTitle } from '../../../../src/contract/lists/reflexes.ts'
import { part, useGet, post } from '../../api/index.ts'
import { Loaded, ErrorBox, Empty } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts } from '../../ui/facts.tsx'
import { SEALED, Text, visible, Lines } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Rates } from '../reflexes/rates.tsx'
import { Acts, State } from './acts.tsx'
import { Proofs } from './proofs.tsx'
import { States } from './states.tsx'
import { Versions } from './code.tsx'
import type { Action } from '../../../../src/contract/action.ts'
import { TraceLink, ScopeLink } from '../../ui/links.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { actionText } from '../trace/spans.ts'
import { Entries } from './entries.tsx'
import { useSignal } from '@preact/signals'
import type { evaluation, reflexMetrics } from '../../../../src/contract/reports/reflex-report.ts'
import { useAction } from '../../api/use-action.ts'
import { Select } from '../../ui/form.tsx'
import { count, percent, compact, usd } from '../../ui/numbers.ts'
import { windows } from '../what-if/windows.ts'

type Metrics = z.infer<typeof reflexMetrics>
type MetricsAnswer = {
  versions: (Metrics & { version: number })[]
  scopes: (Metrics & { scope: string; version: number })[]
  total: Metrics
}

/** The counters of a reflex: in all scopes of the key, and in each. */
function Numbers({ id }: { id: string }) {
  const data = useGet<MetricsAnswer>(`/v1/reflexes/${part(id)}/metrics`)
  return (
    <Section title="Numbers">
      <Loaded data={data}>
        {({ total, scopes }) =>
          total.runs === 0 ? (
            <Empty title="It has not run yet.">
              <p>
                A scope runs the reflexes of its setting <code>reflexes</code>.
              </p>
            </Empty>
          ) : (
            <>
              <div class="card">
                <Facts of={total} columns={figures} />
              </div>
              <Scopes rows={scopes} />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

const figures: TableColumn<Metrics>[] = [
  { title: 'Runs', of: ({ runs }) => runs, kind: 'count' },
  { title: 'Fired', of: ({ fired, runs }) => `${count(fired)} (${percent(runs === 0 ? null : fired / runs)})` },
  {
    title: 'Agreement in shadow',
    of: ({ agreement, shadow }) => `${percent(agreement)} (${count(shadow.agreed)} of ${count(shadow.agreed + shadow.disagreed)} compared)`,
  },
  { title: 'Acted', of: ({ acted }) => acted, kind: 'count' },
  { title: 'Failed', of: ({ failed }) => failed || null, kind: 'count', colour: () => 'red' },
  { title: 'Overruled', of: ({ overruled }) => overruled, kind: 'count' },
  { title: 'Held back', of: ({ held_back }) => held_back, kind: 'count' },
  { title: 'Faulty runs', of: ({ passed }) => passed.error + passed.limit + passed.invalid_action, kind: 'count' },
  {
    title: 'Saved',
    of: (total) => `${compact(total.model_calls_saved)} model calls · ${compact(total.tokens_saved)} tokens · ${usd(total.cost_saved_usd)}`,
  },
  { title: 'Fuel, median and most', of: ({ fuel }) => `${compact(fuel.p50)} · ${compact(fuel.max)}` },
]

function Scopes({ rows }: { rows: MetricsAnswer['scopes'] }) {
  return (
    <Table
      label="By scope"
      rows={rows}
      keyOf={({ scope, version }) => `${scope}@${version}`}
      columns={[
        { title: 'Scope', cell: ScopeLink },
        { title: 'Version', cell: ({ version }) => version, width: 6, numeric: true },
        { title: 'Runs', of: ({ runs }) => runs, kind: 'count' },
        { title: 'Fired', of: ({ fired }) => fired, kind: 'count' },
        { title: 'Acted', of: ({ acted }) => acted, kind: 'count' },
        { title: 'In shadow', of: ({ shadow }) => shadow.fired, kind: 'count', width: 8 },
        { title: 'Agreement', of: ({ agreement }) => agreement, kind: 'share' },
        { title: 'Overruled', of: ({ overruled }) => overruled, kind: 'count', width: 8 },
      ]}
    />
  )
}

/** The report of a range is large. */
const Change = lazy(() => import('../what-if/change.tsx'))

type Evaluation = z.infer<typeof evaluation>
/** Tries the reflex, or a change of it, on what a scope has recorded. */
function Try({ reflex }: { reflex: ShownReflex }) {
  const used = useGet<{ scopes: { scope: string }[] }>(`/v1/reflexes/${part(reflex.id)}/metrics`).value
  const scope = useSignal('')
  const range = useSignal('24h')
  const names = [...new Set(used?.scopes.map((one) => one.scope))]
  const chosen = scope.value || (names[0] ?? '')
  return (
    <>
      <Section title="On what was recorded">
        <div class="card actions">
          <label class="inline">
            Scope
            <input list="scopes-of-reflex" value={chosen} onInput={({ currentTarget }) => (scope.value = currentTarget.value)} />
            <datalist id="scopes-of-reflex">
              {names.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
          <Select
            label="Recordings of"
            value={range.value}
            options={Object.fromEntries(Object.entries(windows).map(([value, [text]]) => [value, text]))}
            onChange={(value) => (range.value = value)}
          />
        </div>
      </Section>
      <Evaluate version={`${reflex.id}@${reflex.version}`} scope={chosen} window={range.value} />
      <Change id={reflex.id} code={reflex.code ?? ''} scope={chosen} range={range.value} />
    </>
  )
}

function Evaluate({ version, scope, window }: { version: string; scope: string; window: string }) {
  const report = useSignal<Evaluation | null>(null)
  const { run, busy, problem } = useAction((_, left) => post<Evaluation>(`/v1/reflexes/${part(version)}/evaluate`, { scope, window }, left))
  const evaluate = async () => {
    const answer = await run(undefined)
    if (answer.ok) report.value = answer.value
  }
  return (
    <Section
      title={`As it is: ${visible(version)}`}
      actions={
        <button type="button" disabled={busy || scope === ''} onClick={() => void evaluate()}>
          {busy ? 'Evaluating …' : 'Evaluate'}
        </button>
      }
    >
      <ErrorBox problem={problem} />
      {report.value ? (
        <Evaluated report={report.value} />
      ) : (
        <p class="quiet">Runs it on the recorded contexts, without acting, and compares it with what was decided.</p>
      )}
    </Section>
  )
}

const facts: TableColumn<Evaluation>[] = [
  { title: 'Contexts', of: ({ contexts }) => contexts.recorded + contexts.rebuilt, kind: 'count' },
  { title: 'Fires', of: ({ fires }) => fires, kind: 'count' },
  {
    title: 'Agreement',
    of: ({ agreement: { agreed, disagreed, not_compared, rate } }) =>
      `${percent(rate)} (${count(agreed)} of ${count(agreed + disagreed)}, ${count(not_compared)} not comparable)`,
  },
  { title: 'Passed although something was done', of: ({ missed }) => missed, kind: 'count' },
  { title: 'Errors', of: ({ errors }) => errors.length, kind: 'count' },
]

function Evaluated({ report }: { report: Evaluation }) {
  const { disagreements, truncated } = report
  return (
    <div class="card" role="status">
      <Facts of={report} columns={facts} />
      {truncated && <p class="wait">There were more contexts than one evaluation reads.</p>}
      {disagreements.length > 0 && (
        <Lines
          of={disagreements.map(
            ({ event_id, action, decided }) =>
              `${event_id}: it would ${actionText(action)}; decided was ${decided.map(actionText).join(', ') || 'nothing'}`,
          )}
        />
      )}
    </div>
  )
}

type ReflexLogEntry = {
  seq: number
  at: string
  trace_id: string
  span_id: string
  reflex_id: string
  version: number
  agreed: boolean | null
  action?: Action
  own?: Action
  decision?: Decision | null
  decided?: Decision | null
  judged_by?: string
}
type ScopesOfMetrics = { scopes: { scope: string }[] }

const kinds = { 'reflex-audited': 'Audits and verdicts', 'reflex-compared': 'Comparisons in shadow mode' }
/** The single comparisons behind a certificate, in one scope, newest first. */
function Audits({ id }: { id: string }) {
  const metrics = useGet<ScopesOfMetrics>(`/v1/reflexes/${part(id)}/metrics`)
  return (
    <Section title="Compared decisions">
      <Loaded data={metrics}>
        {({ scopes }) => (
          <Entries<ReflexLogEntry>
            scopes={[...new Set(scopes.map(({ scope }) => scope))]}
            kinds={kinds}
            match={({ reflex_id }) => reflex_id === id}
          >
            {(entries) => <Compared entries={entries} />}
          </Entries>
        )}
      </Loaded>
    </Section>
  )
}

function Compared({ entries }: { entries: ReflexLogEntry[] }) {
  return (
    <Table
      label="The decisions and their verdicts"
      rows={entries}
      keyOf={({ seq }) => String(seq)}
      columns={[
        { title: 'When', of: ({ at }) => at, kind: 'time' },
        { title: 'Version', cell: ({ version }) => version, width: 5, numeric: true },
        { title: 'Verdict', cell: ({ agreed }) => <Verdict agreed={agreed} />, width: 8 },
        { title: 'By', of: ({ judged_by }) => judged_by ?? 'shadow mode', width: 7 },
        { title: 'The reflex', of: ({ action, own }) => actionText(action ?? own) },
        { title: 'The actual decision', of: ({ decision, decided }) => decidedText(decision ?? decided ?? null) },
        { title: 'Trace', cell: ({ trace_id, span_id }) => <TraceLink id={trace_id} span={span_id} />, width: 4 },
      ]}
    />
  )
}

function Verdict({ agreed }: { agreed: boolean | null }) {
  if (agreed === null) return <span class="quiet">not comparable</span>
  return <span class={agreed ? 'ok' : 'bad'}>{agreed ? 'agreed' : 'disagreed'}</span>
}

const decidedText = (decision: Decision | null): string =>
  decision === null ? 'none' : `${decision.by}: ${decision.acts.length === 0 ? 'nothing' : decision.acts.map(actionText).join(', ')}`

type Proof = z.infer<typeof shownCertificate> & { scope: string; version: number }
type ShownReflex = z.infer<typeof reflex> & { certificates: Proof[] }

const tabs = [
  { id: 'overview', text: 'Overview' },
  { id: 'proof', text: 'Proof and audits' },
  { id: 'code', text: 'Code and versions' },
  { id: 'try', text: 'Try it' },
]

export default function ReflexPage() {
  const id = useRoute().params['id'] ?? ''
  const data = useGet<ShownReflex>(`/v1/reflexes/${part(id)}`)
  return (
    <Page title={visible(data.value ? reflexTitle(data.value) : id)} path={<a href="/reflexes">Reflexes</a>}>
      <Loaded data={data}>{(found) => <Shown reflex={found} reload={data.reload} />}</Loaded>
    </Page>
  )
}

function Shown({ reflex: found, reload }: { reflex: ShownReflex; reload: () => void }) {
  const { id, acts, idle, version, state, description, owner, scopes, provenance, created_at, versions } = found
  const tab = useTab(tabs.map((one) => one.id))
  return (
    <>
      <div class="card">
        <p>
          <Text text={description || 'It has no description.'} most={1000} />
        </p>
        <Facts>
          <Fact name="Id">{visible(id)}</Fact>
          <Fact name="Acts">{acts ?? 'none'}</Fact>
          <Fact name="Newest version">
            {version} <State version={version} state={state} idle={idle} acts={acts} />
          </Fact>
          <Fact name="Owner">{visible(owner)}</Fact>
          <Fact name="Acts in">{scopes.map(visible).join(', ')}</Fact>
          <Fact name="Written">
            <Time at={created_at} /> by {visible(provenance.by)}
            {provenance.run !== undefined && (
              <>
                , <a href={`/learning?run=${part(provenance.run)}`}>learned</a>
              </>
            )}
          </Fact>
        </Facts>
      </div>
      <Tabs label="Parts of this reflex" tabs={tabs} />
      {tab === 'overview' && (
        <>
          <Acts id={id} acts={acts} reload={reload} />
          <Rates reflex={id} />
          <Numbers id={id} />
        </>
      )}
      {tab === 'proof' && (
        <>
          <Proofs certificates={found.certificates} />
          <Audits id={id} />
        </>
      )}
      {tab === 'code' && (
        <>
          <States kind="reflex" id={id} versions={versions} reload={reload} />
          <Section title="Code">
            <Versions kind="reflexes" id={id} versions={versions} />
          </Section>
        </>
      )}
      {tab === 'try' && (found.code === null ? <p>{SEALED}</p> : <Try reflex={found} />)}
    </>
  )
}
