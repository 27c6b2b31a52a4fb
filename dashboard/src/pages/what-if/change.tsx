import { useSignal } from '@preact/signals'
import { Field } from '../../ui/form.tsx'
import { Section } from '../../ui/page.tsx'
import { useRange } from './range.tsx'
import { rangeOf } from './windows.ts'

type ChangeProps = { id: string; code: string; scope: string; range: string }

/** Decides a range again with other code of a reflex. */
export default function Change({ id, code: recorded, scope, range }: ChangeProps) {
  const code = useSignal(recorded)
  const { decide, busy, reports } = useRange(scope)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    void decide(rangeOf(range), { reflex_code: { [id]: code.value } })
  }
  return (
    <Section title="What if its code were another">
      <form class="stack" onSubmit={submit}>
        <Field label="Changed code" rows={16} value={code.value} onInput={(text) => (code.value = text)} />
        <button type="submit" disabled={busy || scope === ''}>
          {busy ? 'Deciding again …' : 'Decide again'}
        </button>
      </form>
      {reports}
    </Section>
  )
}
