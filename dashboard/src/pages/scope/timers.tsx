import { useSignal } from '@preact/signals'
import * as lists from '../../../../src/contract/lists/scopes.ts'
import type { Timer } from '../../../../src/contract/settings/schedule.ts'
import { hasRole, part, request } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { Select } from '../../ui/form.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import { notify } from '../../ui/notices.tsx'
import { NeedsRole, Section } from '../../ui/page.tsx'
import { fieldOf } from './words.ts'

export function Timers({ scope }: { scope: string }) {
  const path = `/v1/scopes/${part(scope)}/timers`
  const may = hasRole('operator')
  const timers = useList<Timer>(lists.timers, may ? { scope } : null, 5000)
  const remove = useAction((name: string) => request<void>('DELETE', `${path}/${part(name)}`))
  if (!may) return <NeedsRole {...{ role: 'operator', what: 'Timers' }} />
  const cancel = async (name: string) => {
    const answer = await remove.run(name)
    if (answer.ok) notify(`The timer ${name} is cancelled.`)
    timers.reload()
  }
  return (
    <>
      <ErrorBox problem={remove.problem} />
      <Rows
        of={lists.timers}
        label="Timers"
        pages={timers}
        own={[
          {
            title: 'Actions',
            cell: ({ name }) => (
              <button type="button" class="plain" aria-label={`Cancel the timer ${name}`} onClick={() => void cancel(name)}>
                Cancel
              </button>
            ),
            width: 7,
          },
        ]}
        empty="No timer is set."
      >
        <p>A timer sends timer.tick at an interval, by a cron expression, or once.</p>
      </Rows>
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

const types = { every_s: { type: 'number', min: 1, step: 'any' }, cron: {}, at: { type: 'datetime-local' } } as const

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
        <Select
          stacked
          label="It ticks"
          value={kind.value}
          options={Object.fromEntries(Object.entries(kinds).map(([id, { text }]) => [id, text]))}
          onChange={(id) => (kind.value = id as Kind)}
        />
        <label key={kind.value}>
          {label}
          <input name="when" required placeholder={placeholder ?? ''} {...types[kind.value]} />
        </label>
        <ErrorBox problem={save.problem} />
        <div>
          <button class="primary" disabled={save.busy}>
            Set the timer
          </button>
        </div>
      </form>
    </Section>
  )
}
