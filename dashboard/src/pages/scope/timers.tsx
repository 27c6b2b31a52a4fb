import { useSignal } from '@preact/signals'
import type { Schedule, Timer } from '../../../../src/contract/settings/schedule.ts'
import { hasRole, part, request, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Empty, ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { count } from '../../ui/numbers.ts'
import { NeedsRole, Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { fieldOf } from './words.ts'

const rhythm = (schedule: Schedule): string =>
  'every_s' in schedule ? `every ${schedule.every_s} s` : 'cron' in schedule ? `cron ${schedule.cron} (UTC)` : 'once'

export function Timers({ scope }: { scope: string }) {
  const path = `/v1/scopes/${part(scope)}/timers`
  const may = hasRole('operator')
  const timers = useGet<{ items: Timer[] }>(may ? path : null, { every_ms: 5000 })
  const remove = useAction((name: string) => request<void>('DELETE', `${path}/${part(name)}`))
  if (!may) return <NeedsRole {...{ role: 'operator', what: 'Timers' }} />
  const cancel = async (name: string) => {
    const answer = await remove.run(name)
    if (answer.ok) notify(`The timer ${name} is cancelled.`)
    timers.reload()
  }
  return (
    <>
      {remove.problem && <ErrorBox problem={remove.problem} />}
      <Loaded data={timers}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No timer is set.">
              <p>A timer sends a timer.tick event at an interval, by a cron expression, or once.</p>
            </Empty>
          ) : (
            <Table
              label="Timers"
              rows={items}
              keyOf={({ name }) => name}
              columns={[
                { title: 'Name', cell: ({ name }) => name },
                { title: 'Rhythm', cell: ({ schedule }) => rhythm(schedule) },
                { title: 'Next tick', cell: ({ next_at }) => <Time at={next_at} />, width: '8rem' },
                { title: 'Ticks', cell: ({ fired }) => count(fired), width: '6rem', numeric: true },
                {
                  title: 'Actions',
                  cell: ({ name }) => (
                    <button type="button" class="plain" aria-label={`Cancel the timer ${name}`} onClick={() => void cancel(name)}>
                      Cancel
                    </button>
                  ),
                  width: '7rem',
                },
              ]}
            />
          )
        }
      </Loaded>
      <SetTimer path={path} onDone={timers.reload} />
    </>
  )
}

type Kind = 'every_s' | 'cron' | 'at'
const kinds: Record<Kind, { text: string; label: string; placeholder?: string }> = {
  every_s: { text: 'at an interval', label: 'Seconds between ticks', placeholder: '60' },
  cron: { text: 'by a cron expression', label: 'Cron expression, in UTC', placeholder: '0 6 * * *' },
  at: { text: 'once', label: 'Time, in your time zone' },
}

function SetTimer({ path, onDone }: { path: string; onDone: () => void }) {
  const kind = useSignal<Kind>('every_s')
  const save = useAction(({ name, schedule }: { name: string; schedule: unknown }) =>
    request<Timer>('PUT', `${path}/${part(name)}`, { body: schedule }),
  )
  const { label, placeholder } = kinds[kind.value]
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const name = fieldOf(event, 'name')
    const when = fieldOf(event, 'when')
    const value = kind.value === 'every_s' ? Number(when) : kind.value === 'at' ? new Date(when).toISOString() : when
    const answer = await save.run({ name, schedule: { [kind.value]: value } })
    if (!answer.ok) return
    notify(`The timer ${name} is set.`)
    form.reset()
    onDone()
  }
  return (
    <Section title="Set a timer">
      <form class="stack card" onSubmit={(event) => void submit(event)}>
        <label>
          Name
          <input name="name" required maxLength={64} pattern="[A-Za-z0-9._:\-]+" placeholder="daily-report" />
        </label>
        <label>
          It ticks
          <select value={kind.value} onChange={({ currentTarget }) => (kind.value = currentTarget.value as Kind)}>
            {Object.entries(kinds).map(([id, { text }]) => (
              <option key={id} value={id}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label key={kind.value}>
          {label}
          {kind.value === 'every_s' && <input name="when" required type="number" min={1} step="any" placeholder={placeholder} />}
          {kind.value === 'cron' && <input name="when" required placeholder={placeholder} />}
          {kind.value === 'at' && <input name="when" required type="datetime-local" />}
        </label>
        {save.problem && <ErrorBox problem={save.problem} />}
        <div>
          <button class="primary" disabled={save.busy}>
            Set the timer
          </button>
        </div>
      </form>
    </Section>
  )
}
