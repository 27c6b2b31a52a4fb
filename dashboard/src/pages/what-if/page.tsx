import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import { written } from '../../api/problem.ts'
import { query } from '../../api/index.ts'
import { submitted } from '../../api/use-action.ts'
import { Page, Section } from '../../ui/page.tsx'
import { useRange } from './range.tsx'
import { rangeOf, windows } from './windows.ts'

const EXAMPLE = '{"settings": {"tau": 0.9}}'

/** Decides what a scope has recorded again, with changes. The address has all of it. */
export default function WhatIfPage() {
  const { path, query: asked, route } = useLocation()
  const { scope = '', since = '', until = '', changes = '' } = asked
  const flaw = useSignal('')
  const { decide, busy, reports } = useRange(scope)
  useEffect(() => {
    const parsed = written(changes)
    if (scope && since && until && parsed.ok) void decide({ since, until }, parsed.value as object)
  }, [scope, since, until, changes])
  const submit = (event: SubmitEvent) => {
    const of = submitted(event)
    const parsed = written(of('changes'))
    flaw.value = parsed.ok ? '' : 'The changes are not JSON.'
    if (parsed.ok) route(path + query({ scope: of('scope'), ...rangeOf(of('range')), changes: JSON.stringify(parsed.value) }))
  }
  return (
    <Page title="What if" needs="viewer">
      <p class="quiet">Which decisions of a scope would change? Nothing acts, no tool is called, and no model is asked.</p>
      <form class="stack" onSubmit={submit} key={scope + changes}>
        <label>
          Scope
          <input name="scope" required defaultValue={scope} autocomplete="off" />
        </label>
        <label>
          Recordings of
          <select name="range" defaultValue="24h">
            {Object.entries(windows).map(([value, [text]]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Changes, as JSON: settings, reflexes, reflex_code, manifest, instructions
          <textarea name="changes" rows={4} spellcheck={false} required defaultValue={changes || EXAMPLE} />
        </label>
        {flaw.value !== '' && <p role="alert">{flaw.value}</p>}
        <div>
          <button type="submit" class="primary" disabled={busy}>
            {busy ? 'Deciding again …' : 'Decide again'}
          </button>
        </div>
      </form>
      {since && (
        <Section title="Report">
          <p class="quiet">
            {scope}, {since} to {until}
          </p>
          {reports}
        </Section>
      )}
    </Page>
  )
}
