import { useSignal } from '@preact/signals'
import type { z } from 'zod'
import type { learnRun } from '../../../../src/features/learning/contract/runs.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { count } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Lines, Text } from '../../ui/text.tsx'
import { CandidateView } from './candidate.tsx'
import { TrustOf } from './trust.tsx'

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
  const { run_id, candidates, rejected, episodes } = run
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
          <Lines of={rejected.map(({ what, reason }) => `${what}: ${reason}`)} />
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
