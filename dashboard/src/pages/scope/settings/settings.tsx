import { useSignal } from '@preact/signals'
import { hasRole, request, useGet } from '../../../api/index.ts'
import { useAction } from '../../../api/use-action.ts'
import { failed } from '../../../api/problem.ts'
import { ErrorBox, Loaded } from '../../../ui/feedback.tsx'
import { notify } from '../../../ui/notices.tsx'
import { NeedsRole } from '../../../ui/page.tsx'
import { fieldOf } from '../words.ts'
import { Field } from './field.tsx'
import { same, type Schema } from './schema.ts'
import './settings.css'

type Values = Readonly<Record<string, unknown>>
type Changed = { settings: Values }
type FormProps = { path: string; settings: Values }

/** The settings as a form that their schema describes, or as one merge patch. */
export function SettingsForm({ path, settings }: FormProps) {
  const schema = useGet<Schema>('/v1/settings/schema')
  const isRaw = useSignal(false)
  const may = hasRole('operator')
  return (
    <>
      {!may && <NeedsRole {...{ role: 'operator', what: 'Changing settings' }} />}
      <div>
        <button type="button" aria-pressed={isRaw.value} onClick={() => (isRaw.value = !isRaw.value)}>
          Edit as JSON
        </button>
      </div>
      {isRaw.value ? (
        <Raw path={path} settings={settings} disabled={!may} />
      ) : (
        <Loaded data={schema}>
          {({ properties = {} }) => <Fields path={path} settings={settings} properties={properties} disabled={!may} />}
        </Loaded>
      )}
    </>
  )
}

const useSave = (path: string) => useAction((patch: Values) => request<Changed>('PATCH', path, { body: patch }))

type FieldsProps = FormProps & { properties: Record<string, Schema>; disabled: boolean }

function Fields({ path, settings, properties, disabled }: FieldsProps) {
  /** Changed settings only; null restores the default. */
  const edits = useSignal<Values>({})
  /** The values as saved, until the page has loaded them. */
  const saved = useSignal<Values>({})
  const find = useSignal('')
  const save = useSave(path)
  const current: Values = { ...settings, ...saved.value }
  const change = (name: string, value: unknown) => {
    const { [name]: _before, ...rest } = edits.value
    edits.value = same(value, current[name]) ? rest : { ...rest, [name]: value ?? null }
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await save.run(edits.value)
    if (!answer.ok) return
    notify('The settings are saved. They hold from the next event on.')
    saved.value = answer.value.settings
    edits.value = {}
  }
  const names = Object.keys(properties).filter((name) => name.includes(find.value.trim().toLowerCase()))
  const changes = Object.keys(edits.value)
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label>
        Find a setting
        <input type="search" value={find.value} onInput={({ currentTarget }) => (find.value = currentTarget.value)} />
      </label>
      {names.map((name) => {
        const { default: standard, ...schema } = properties[name] ?? {}
        const value = name in edits.value ? (edits.value[name] ?? undefined) : current[name]
        return (
          <div key={name} class={name in edits.value ? 'card changed' : 'card'}>
            <Field name={name} schema={schema} value={value} disabled={disabled} onChange={(next) => change(name, next)} />
            <p class="quiet">
              {name in edits.value ? 'Changed, not saved. ' : ''}
              Default: <code>{standard === undefined ? 'not set' : JSON.stringify(standard)}</code>{' '}
              {!disabled && !same(current[name], standard) && edits.value[name] !== null && (
                <button type="button" class="plain" onClick={() => change(name, null)}>
                  Restore the default of {name}
                </button>
              )}
            </p>
          </div>
        )
      })}
      <div class="save">
        {save.problem && <ErrorBox problem={save.problem} />}
        <button class="primary" disabled={disabled || changes.length === 0 || save.busy}>
          {changes.length === 0 ? 'Nothing to save' : `Save ${changes.join(', ')}`}
        </button>
        {changes.length > 0 && (
          <button type="button" onClick={() => (edits.value = {})}>
            Discard the changes
          </button>
        )}
      </div>
    </form>
  )
}

function Raw({ path, settings, disabled }: FormProps & { disabled: boolean }) {
  const save = useAction(async (text: string) => {
    try {
      return await request<Changed>('PATCH', path, { body: JSON.parse(text) })
    } catch (error) {
      return failed(0, 'This is not JSON', String(error))
    }
  })
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await save.run(fieldOf(event, 'patch'))
    if (answer.ok) notify('The settings are saved. They hold from the next event on.')
  }
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label>
        A merge patch: only what it names changes, and null restores a default
        <textarea name="patch" rows={4} spellcheck={false} disabled={disabled} placeholder='{"context_limit": 200}' />
      </label>
      {save.problem && <ErrorBox problem={save.problem} />}
      <div>
        <button class="primary" disabled={disabled || save.busy}>
          Save
        </button>
      </div>
      <h2>The settings now</h2>
      <pre>{JSON.stringify(settings, null, 2)}</pre>
    </form>
  )
}
