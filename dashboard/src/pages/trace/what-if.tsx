import { useSignal, type Signal } from '@preact/signals'
import type { ReflexReference } from '../../../../src/contract/reflex.ts'
import type { ReplayReport } from '../../../../src/features/replay/contract/replay.ts'
import type { ReplayChanges } from '../../../../src/features/replay/contract/what-if.ts'
import type { Span, TraceReport } from '../../../../src/contract/reports/trace.ts'
import { get, part, post, query, useGet, written } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { visible } from '../../ui/text.tsx'
import { numberOf, textOf } from './spans.ts'

const kinds = {
  setting: 'A setting',
  code: 'Code of a reflex',
  chain: 'Which reflexes run',
  skill: 'A skill',
  instructions: 'The instructions',
}
type Kind = keyof typeof kinds
type WhatIfState = { settings: Record<string, unknown> & { reflexes?: ReflexReference[]; instructions?: string } }
type Added = { title: string; changes: ReplayChanges }
type WhatIfProps = { trace: TraceReport; onClose: () => void; onReport: (report: ReplayReport, changes: ReplayChanges) => void }

/** Changes are named, and the trace is decided again with them. Nothing acts. */
export function WhatIf(props: WhatIfProps) {
  const state = useGet<WhatIfState>(`/v1/scopes/${part(props.trace.scopes[0] ?? '')}`)
  return (
    <Dialog title="What if" onClose={props.onClose} wide>
      <p class="quiet">
        Change one thing or several, and see which decisions of this trace change. No tool is called and no model is asked.
      </p>
      <Loaded data={state}>{({ settings }) => <Form {...props} settings={settings} />}</Loaded>
    </Dialog>
  )
}

function Form({ trace, onReport, settings }: WhatIfProps & WhatIfState) {
  const { kind, name, text, load, choose } = useChoice(trace, settings)
  const wrong = useSignal<string | null>(null)
  const added = useSignal<Added[]>([])
  const [scope = ''] = trace.scopes
  const { run, busy, problem } = useAction((changes: ReplayChanges, left) =>
    post<ReplayReport>(
      `/v1/traces/${trace.trace_id}/replay${query({ scope: trace.scopes.length === 1 ? scope : null })}`,
      { mode: 'what_if', changes },
      left,
    ),
  )
  /** The added changes and the one in the form, or null if one of them is wrong. */
  const all = (): Added[] | null => {
    const title = `${kinds[kind.value]}${kind.value === 'chain' || kind.value === 'instructions' ? '' : ` ${name.value}`}`
    const changes = changesOf(kind.value, name.value, text.value)
    const others = added.value.filter((one) => one.title !== title)
    wrong.value = typeof changes === 'string' ? changes : null
    return typeof changes === 'string' ? null : [...others, { title, changes }]
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const list = all()
    if (list === null) return
    const changes = together(list)
    const answer = await run(changes)
    if (answer.ok) onReport(answer.value, changes)
  }
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Select stacked label="Change" value={kind.value} options={kinds} onChange={(one) => choose(one as Kind)} />
      {kind.value === 'setting' && (
        <Choice label="Setting" values={Object.keys({ tau: null, ...settings })} value={name.value} onChange={load} />
      )}
      {(kind.value === 'code' || kind.value === 'skill') && (
        <Choice label={kind.value === 'code' ? 'Reflex' : 'Skill'} values={namesIn(trace, kind.value)} value={name.value} onChange={load} />
      )}
      <Field
        label={labels[kind.value]}
        rows={kind.value === 'setting' ? 4 : 14}
        value={text.value}
        onInput={(value) => (text.value = value)}
      />
      {wrong.value !== null && <p role="alert">{wrong.value}</p>}
      <ErrorBox problem={problem} />
      <AddedChanges added={added} />
      <div class="actions">
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Deciding again …' : 'Decide again'}
        </button>
        <button type="button" onClick={() => (added.value = all() ?? added.value)}>
          Keep it, and change another
        </button>
      </div>
    </form>
  )
}

const AddedChanges = ({ added }: { added: Signal<Added[]> }) => (
  <>
    {added.value.map(({ title }) => (
      <p key={title}>
        Also changed: {visible(title)}{' '}
        <button type="button" class="plain" onClick={() => (added.value = added.value.filter((one) => one.title !== title))}>
          Leave it out
        </button>
      </p>
    ))}
  </>
)

/** The change in the form: its kind, the name of what it changes, and the new text. */
function useChoice(trace: TraceReport, settings: WhatIfState['settings']) {
  const kind = useSignal<Kind>('setting')
  const name = useSignal('tau')
  const text = useSignal(JSON.stringify(settings['tau'] ?? null))
  const load = async (chosen: string) => {
    name.value = chosen
    const of = kind.value
    const value = await initial(of, chosen, settings)
    // Another choice was made while it was loaded.
    if (of === kind.value && chosen === name.value) text.value = value
  }
  const choose = (next: Kind) => {
    kind.value = next
    const [first] = namesIn(trace, next)
    void load(next === 'setting' ? 'tau' : (first ?? ''))
  }
  return { kind, name, text, load, choose }
}

type ChoiceProps = { label: string; values: readonly string[]; value: string; onChange: (value: string) => Promise<void> }

function Choice({ label, values, value, onChange }: ChoiceProps) {
  if (values.length === 0) return <p>This trace has none.</p>
  return <Select stacked label={label} value={value} options={values} onChange={(one) => void onChange(one)} />
}

const labels: Record<Kind, string> = {
  setting: 'New value, as JSON',
  code: 'Code',
  chain: 'Chain, as JSON: leave a reflex out, or name a version',
  skill: 'Manifest, as JSON',
  instructions: 'Instructions',
}

/** The reflexes or skills of the trace, each as the version that it used. */
function namesIn({ root }: TraceReport, kind: Kind): string[] {
  const refs = new Set<string>()
  const add = (span: Span) => {
    const reflex = textOf(span, 'reflex.id')
    const skill = span.kind === 'gate' || span.kind === 'run' ? textOf(span, 'gen_ai.skill.name') : null
    if (kind === 'code' && span.kind === 'reflex' && reflex !== null) refs.add(`${reflex}@${numberOf(span, 'reflex.version')}`)
    if (kind === 'skill' && skill !== null) refs.add(`${skill}@${textOf(span, 'reflex.skill.version')}`)
    span.children.forEach(add)
  }
  add(root)
  return Array.from(refs)
}

/** The value as it is now, to be edited. */
async function initial(kind: Kind, name: string, settings: WhatIfState['settings']): Promise<string> {
  if (kind === 'setting') return JSON.stringify(settings[name] ?? null, null, 2)
  if (kind === 'chain') return JSON.stringify(settings.reflexes ?? [], null, 2)
  if (kind === 'instructions') return settings.instructions ?? ''
  if (name === '') return ''
  const answer = await get<{ code?: string; manifest?: unknown }>(`/v1/${kind === 'code' ? 'reflexes' : 'skills'}/${part(name)}`)
  if (!answer.ok) return ''
  return answer.value.code ?? JSON.stringify(answer.value.manifest, null, 2)
}

/** A single request has all of them; of the same setting or reflex the last counts. */
function together(added: readonly Added[]): ReplayChanges {
  const changes: Record<string, unknown> = {}
  const isOf = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  for (const [name, value] of added.flatMap((one) => Object.entries(one.changes))) {
    if (name === 'manifest') changes[name] = [...((changes[name] as unknown[] | undefined) ?? []), ...(value as unknown[])]
    else changes[name] = isOf(value) ? { ...(changes[name] as object | undefined), ...(value as object) } : value
  }
  return changes
}

/** The changes, or what is wrong with them. */
function changesOf(kind: Kind, name: string, text: string): ReplayChanges | string {
  if (kind === 'instructions') return { instructions: text }
  if (kind === 'code') return { reflex_code: { [name.split('@')[0] ?? '']: text } }
  const json = written(text)
  if (!json.ok) return 'The value is not JSON.'
  const { value } = json
  // The server checks the shapes, and says what is wrong.
  const changes = kind === 'chain' ? { reflexes: value } : kind === 'skill' ? { manifest: [value] } : { settings: { [name]: value } }
  return changes as ReplayChanges
}
