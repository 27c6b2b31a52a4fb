import type { z } from 'zod'
import type { promotion } from '../../../../src/contract/control-plane/promotion.ts'
import type { CiReport, skillTest } from '../../../../src/contract/reports/skill-test.ts'
import { hasRole, part, post, query, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts, Lines, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

type Test = z.infer<typeof skillTest>
type Promotion = z.infer<typeof promotion>

/** The latest test of a version, and those of its promotions. */
export function Tests({ id, version }: { id: string; version: string }) {
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
        {test.problem && <ErrorBox problem={test.problem} />}
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
      {list.problem && <ErrorBox problem={list.problem} onRetry={list.reload} />}
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
