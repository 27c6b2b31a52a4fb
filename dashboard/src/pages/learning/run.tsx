import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { learnRun, Candidate, EvidencePart, ReadPlace } from '../../../../src/features/learning/contract/runs.ts'
import { part, useGet, hasRole, query } from '../../api/index.ts'
import { refusalWords, untold } from '../../../../src/contract/lists/refusals.ts'
import { Loaded, LoadedList } from '../../ui/feedback.tsx'
import { count, compact, percent, usd } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Lines, Text, visible } from '../../ui/text.tsx'
import { TrustOf } from './trust.tsx'
import { usePages } from '../../api/use-pages.ts'
import { Json } from '../../ui/json.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Status } from '../../ui/status.tsx'
import { duration } from '../../ui/time.tsx'
import { Change } from '../reflex/states.tsx'

type Props = { run_id: string; candidate: Candidate; reload: () => void }
type NextState = { to: string; title: string }

const steps: Record<Candidate['kind'], { accept: NextState; reject: NextState }> = {
  reflex: { accept: { to: 'active', title: 'Accept' }, reject: { to: 'retired', title: 'Reject' } },
  skill: { accept: { to: 'active', title: 'Accept' }, reject: { to: 'deprecated', title: 'Reject' } },
}

/** A reflex or skill that a run found: the decision, the evidence, its content, and the choice. */
function CandidateView({ run_id, candidate, reload }: Props) {
  const { kind, id, version, state, decision, examples, code, manifest } = candidate
  const step = useSignal<NextState | null>(null)
  const { accept, reject } = steps[kind]
  const may = hasRole('operator') && state !== 'deleted'
  const page = `/${kind === 'reflex' ? 'reflexes' : 'skills'}/${part(id)}`
  return (
    <article class="card" aria-label={`${kind} ${id}`}>
      <div class="heading">
        <h3>
          <a href={page}>{visible(id)}</a> {visible(version)} <Status status={state} />
        </h3>
        {may && (
          <div class="actions">
            {state !== accept.to && (
              <button type="button" class="primary" onClick={() => (step.value = accept)}>
                {accept.title}
              </button>
            )}
            {state !== reject.to && (
              <button type="button" onClick={() => (step.value = reject)}>
                {reject.title}
              </button>
            )}
          </div>
        )}
      </div>
      <p>
        Decides: <Text text={decision} most={400} />
      </p>
      {candidate.mined ? (
        <Facts of={candidate.mined} columns={mined} />
      ) : (
        candidate.evidence && <Facts of={candidate.evidence} columns={learned} />
      )}
      <p>
        Examples:{' '}
        {examples.map(({ trace_id, seq }) => (
          <span key={seq}>
            <TraceLink id={trace_id} text={`entry ${seq}`} />{' '}
          </span>
        ))}
      </p>
      <Places run_id={run_id} candidate={candidate} />
      <Content code={code} manifest={manifest} />
      {step.value && (
        <Change
          kind={kind}
          id={id}
          version={{ version, state, state_reason: null, state_at: '', hash: '' }}
          step={step.value}
          onClose={() => (step.value = null)}
          reload={reload}
        />
      )}
    </article>
  )
}

function Content({ code, manifest }: { code: string | undefined; manifest: unknown }) {
  return (
    <details>
      <summary>{code === undefined ? 'Manifest' : 'Code'}</summary>
      {code === undefined ? (
        <Json value={manifest} open={2} label="Manifest" />
      ) : (
        <pre tabIndex={0} aria-label="Code">
          {visible(code)}
        </pre>
      )}
    </details>
  )
}

const mined: TableColumn<NonNullable<Candidate['mined']>>[] = [
  { title: 'Turns with its sequence', of: ({ turns, support }) => `${count(turns)} (${percent(support)})` },
  { title: 'Ended well', of: ({ success }) => success, kind: 'share' },
  { title: 'Change of cost', of: ({ delta_cost }) => delta_cost, kind: 'share' },
  { title: 'Change of latency, p95', of: ({ delta_p95 }) => delta_p95, kind: 'share' },
  { title: 'Tests', of: ({ tests: { unit, fuzz } }) => `${unit.passed} of ${unit.n} cases, ${fuzz.passed} of ${fuzz.n} mutations` },
]
const learned: TableColumn<NonNullable<Candidate['evidence']>>[] = [
  {
    title: 'Learned from',
    of: ({ train: { n, of, exceptions } }) => `${count(n)} of ${count(of)} decisions, ${count(exceptions)} exceptions`,
  },
  {
    title: 'Newer decisions it would have taken',
    of: ({ held_out: { covered, n } }) => `${count(covered)}, of ${count(n)} of its kind`,
  },
  {
    title: 'Agreed',
    of: ({ held_out: { agreed, covered, wilson_low } }) =>
      `${count(agreed)} (${percent(covered === 0 ? null : agreed / covered)}, at least ${percent(wilson_low)})`,
  },
  {
    title: 'These took',
    of: ({ saves: { model_calls, tokens, cost_usd, latency_ms } }) =>
      `${compact(model_calls)} model calls · ${compact(tokens)} tokens · ${usd(cost_usd)} · ${duration(latency_ms)}`,
  },
]

const parts: Record<EvidencePart, string> = { train: 'Learned from', agreed: 'Newer, agreed', differed: 'Newer, differed' }

/** The decisions behind the numbers, each with its trace. They are loaded when they are opened. */
function Places({ run_id, candidate: { id, kind } }: { run_id: string; candidate: Candidate }) {
  const open = useSignal<EvidencePart | null>(null)
  const path = `/v1/learn/runs/${part(run_id)}/evidence${query({ candidate: id, part: open.value })}`
  const places = usePages<ReadPlace>(open.value === null ? null : path)
  const offered = kind === 'skill' ? (['train'] as const) : (Object.keys(parts) as EvidencePart[])
  return (
    <>
      <div class="actions" role="group" aria-label="Decisions behind the numbers">
        {offered.map((one) => (
          <button key={one} type="button" aria-pressed={open.value === one} onClick={() => (open.value = open.value === one ? null : one)}>
            {parts[one]}
          </button>
        ))}
      </div>
      {open.value !== null && (
        <>
          <LoadedList pages={places} empty={<p class="quiet">None.</p>}>
            {(items) => (
              <ul class="places">
                {items.map(({ seq, trace_id, event_id }) => (
                  <li key={`${seq} ${event_id}`}>
                    <TraceLink id={trace_id} text={visible(event_id)} />
                  </li>
                ))}
              </ul>
            )}
          </LoadedList>
          {places.more && (
            <button type="button" onClick={places.loadMore}>
              More
            </button>
          )}
        </>
      )}
    </>
  )
}

type LearnRun = z.infer<typeof learnRun>
const RUNNING_MS = 1000

/** A run: its progress, what it found with the evidence, and what it rejected. */
export function Run({ id }: { id: string }) {
  const isRunning = useSignal(true)
  const data = useGet<LearnRun>(`/v1/learn/runs/${part(id)}`, isRunning.value ? { every_ms: RUNNING_MS } : {})
  const status = data.value?.status
  if (status !== undefined && isRunning.peek() !== (status === 'running')) isRunning.value = status === 'running'
  return (
    <Page title="Run of learning" path={<a href="/learning">Learning</a>}>
      <Loaded data={data}>{(run) => <Shown run={run} reload={data.reload} />}</Loaded>
    </Page>
  )
}

function Shown({ run, reload }: { run: LearnRun; reload: () => void }) {
  const { run_id, candidates, episodes } = run
  const rejected = untold(run)
  return (
    <>
      <Head run={run} />
      <TrustOf run={run} onTrusted={reload} />
      <Section title={`Found (${candidates.length})`}>
        {candidates.length === 0 && <p class="quiet">{run.status === 'running' ? 'Nothing yet.' : 'Nothing that it could prove.'}</p>}
        {candidates.map((candidate) => (
          <CandidateView key={`${candidate.id}@${candidate.version}`} run_id={run_id} candidate={candidate} reload={reload} />
        ))}
      </Section>
      {rejected.length > 0 && (
        <Section title={`Rejected (${rejected.length})`}>
          <Lines of={rejected.map(refusalWords)} />
        </Section>
      )}
      {episodes.skipped.length > 0 && (
        <Section title="Skipped decisions">
          <Lines of={episodes.skipped.map(({ reason, n }) => `${count(n)}: ${reason}`)} />
        </Section>
      )}
    </>
  )
}

const facts: TableColumn<LearnRun>[] = [
  { title: 'Status', of: ({ status }) => status, kind: 'status' },
  { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
  { title: 'Started', of: ({ started_at }) => started_at, kind: 'time' },
  { title: 'By', of: ({ by }) => by },
  { title: 'Ended', of: ({ ended_at }) => ended_at, kind: 'time' },
  {
    title: 'Decisions',
    of: ({ episodes }) => `${count(episodes.read)} read, ${count(episodes.used)} used, ${count(episodes.asked_again)} asked again`,
  },
]

function Head({ run }: { run: LearnRun }) {
  const { status, answer, progress } = run
  const { phase, done, of } = progress
  return (
    <div class="card" role="status">
      <p>
        <Text text={answer} most={1000} />
      </p>
      {status === 'running' && (
        <label>
          {phase}: {count(done)} {of !== null && `of ${count(of)}`}
          <progress {...(of !== null && { value: done, max: Math.max(1, of) })} />
        </label>
      )}
      <Facts of={run} columns={facts} />
    </div>
  )
}
