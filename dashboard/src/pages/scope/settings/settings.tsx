import './settings.css'
import { useSignal } from '@preact/signals'
import { hasRole, request, useGet } from '../../../api/index.ts'
import { useAction } from '../../../api/use-action.ts'
import { written } from '../../../api/problem.ts'
import { ErrorBox, Loaded } from '../../../ui/feedback.tsx'
import { notify } from '../../../ui/notices.tsx'
import { NeedsRole } from '../../../ui/page.tsx'
import { useUnsaved } from '../../../ui/use-unsaved.ts'
import { fieldOf } from '../words.ts'
import { useId } from 'preact/hooks'
import { visible } from '../../../ui/text.tsx'
/** The parts of JSON Schema that the form of a setting is made from. */
type SettingSchema = {
  type?: string
  description?: string
  default?: unknown
  examples?: unknown[]
  enum?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  items?: SettingSchema
  properties?: Record<string, SettingSchema>
  required?: string[]
  anyOf?: SettingSchema[]
}

/** The way in which a value is edited. `json`: everything that has no field of its own. */
type FieldKind = 'choice' | 'line' | 'text' | 'number' | 'switch' | 'lines' | 'group' | 'json'

const LONG = 300
const simple: Readonly<Record<string, FieldKind>> = { integer: 'number', number: 'number', boolean: 'switch' }

function kindOf({ type = '', enum: options, items, properties, maxLength = 0 }: SettingSchema): FieldKind {
  if (options) return 'choice'
  if (type === 'string') return maxLength > LONG ? 'text' : 'line'
  if (type === 'array') return items?.type === 'string' ? 'lines' : 'json'
  const isGroup = properties && Object.values(properties).every((one) => !['group', 'json'].includes(kindOf(one)))
  return isGroup ? 'group' : (simple[type] ?? 'json')
}

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

type FieldProps = {
  name: string
  schema: SettingSchema
  value: unknown
  disabled: boolean
  onChange: (value: unknown) => void
  label?: string
}

/** A setting as its schema describes it. `undefined` is "not set". */
function Field(props: FieldProps) {
  const { name, schema, value, disabled, onChange } = props
  const id = useId()
  if (kindOf(schema) !== 'group') {
    return (
      <div class="field">
        <label for={id}>{props.label ?? name}</label>
        <Input {...props} id={id} />
        <Help id={`${id}-help`} text={schema.description} />
      </div>
    )
  }
  const parts = (typeof value === 'object' ? value : {}) as Record<string, unknown>
  return (
    <fieldset class="field" disabled={disabled}>
      <legend>{name}</legend>
      <Help id={id} text={schema.description} />
      {Object.entries(schema.properties ?? {}).map(([part, of]) => (
        <Field
          key={part}
          name={`${name}.${part}`}
          label={part}
          schema={of}
          value={parts[part]}
          disabled={disabled}
          onChange={(changed) => onChange({ ...parts, [part]: changed })}
        />
      ))}
    </fieldset>
  )
}

function Input({ id, schema, value, disabled, onChange }: FieldProps & { id: string }) {
  const common = { id, disabled, 'aria-describedby': `${id}-help` }
  switch (kindOf(schema)) {
    case 'choice':
      return (
        <select {...common} value={textOf(value)} onChange={({ currentTarget }) => onChange(currentTarget.value || undefined)}>
          {value === undefined && <option value="">not set</option>}
          {schema.enum?.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )
    case 'number':
      return (
        <input
          {...common}
          type="number"
          step={schema.type === 'integer' ? 1 : 'any'}
          min={schema.minimum}
          max={schema.maximum}
          value={typeof value === 'number' ? value : ''}
          onInput={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : Number(text))}
        />
      )
    case 'switch':
      return (
        <input {...common} type="checkbox" checked={value === true} onChange={({ currentTarget }) => onChange(currentTarget.checked)} />
      )
    case 'line':
    case 'text': {
      const text = { ...common, maxLength: schema.maxLength, value: textOf(value) }
      const typed = ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
        onChange(currentTarget.value || undefined)
      return kindOf(schema) === 'line' ? <input {...text} onInput={typed} /> : <textarea {...text} rows={4} onInput={typed} />
    }
    case 'lines':
      return <Written common={common} value={value} form={asLines(value)} onChange={onChange} />
    case 'group':
    case 'json':
      break
  }
  return <Written common={common} value={value} form={asJson} onChange={onChange} />
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A written form of a value. `parse` throws if the text is not in this form. */
type Form = { hint: string; print: (value: unknown) => string; parse: (text: string) => unknown }

const asJson: Form = {
  hint: 'JSON',
  print: (value) => (value === undefined ? '' : JSON.stringify(value, null, 2)),
  parse: (text) => (text.trim() === '' ? undefined : JSON.parse(text)),
}
/** No lines: not set where it was not set, an empty list otherwise. */
const asLines = (before: unknown): Form => ({
  hint: 'One on each line',
  print: (value) => (Array.isArray(value) ? value.join('\n') : ''),
  parse(text) {
    const lines = text.split('\n').flatMap((line) => line.trim() || [])
    return lines.length === 0 && before === undefined ? undefined : lines
  },
})

type Common = { id: string; disabled: boolean; 'aria-describedby': string }
type WrittenProps = { common: Common; value: unknown; form: Form; onChange: (value: unknown) => void }

/** The text is kept as it is typed, until the value changes elsewhere. */
function Written({ common, value, form: { hint, print, parse }, onChange }: WrittenProps) {
  const typed = useSignal({ text: print(value), value, flaw: '' })
  if (typed.value.flaw === '' && !same(typed.value.value, value)) typed.value = { text: print(value), value, flaw: '' }
  const change = ({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => {
    const text = currentTarget.value
    try {
      const parsed = parse(text)
      typed.value = { text, value: parsed, flaw: '' }
      onChange(parsed)
    } catch (error) {
      typed.value = { text, value, flaw: String(error) }
    }
    currentTarget.setCustomValidity(typed.value.flaw)
  }
  const { text, flaw } = typed.value
  return (
    <>
      <textarea {...common} rows={4} spellcheck={false} placeholder={hint} aria-invalid={flaw !== ''} value={text} onInput={change} />
      {flaw !== '' && <span class="bad">{visible(flaw)}</span>}
    </>
  )
}

/** Descriptions write names between backticks. */
const Help = ({ id, text = '' }: { id: string; text?: string | undefined }) => (
  <small id={id} class="quiet">
    {text.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece))}
  </small>
)

type Values = Readonly<Record<string, unknown>>
type Changed = { settings: Values }
type FormProps = { path: string; settings: Values }

/** The settings as a form that their schema describes, or as one merge patch. */
export function SettingsForm({ path, settings }: FormProps) {
  const schema = useGet<SettingSchema>('/v1/settings/schema')
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

type FieldsProps = FormProps & { properties: Record<string, SettingSchema>; disabled: boolean }

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
  useUnsaved(changes.length === 0 ? null : changes.join(', '))
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
        <ErrorBox problem={save.problem} />
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
    const json = written(text)
    return json.ok ? request<Changed>('PATCH', path, { body: json.value }) : json
  })
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const answer = await save.run(fieldOf(event, 'patch'))
    if (!answer.ok) return
    patch.value = ''
    notify('The settings are saved. They hold from the next event on.')
  }
  const patch = useSignal('')
  useUnsaved(patch.value === '' ? null : 'the patch')
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <label>
        A merge patch: only what it names changes, and null restores a default
        <textarea
          name="patch"
          rows={4}
          spellcheck={false}
          disabled={disabled}
          placeholder='{"context_limit": 200}'
          value={patch}
          onInput={({ currentTarget }) => (patch.value = currentTarget.value)}
        />
      </label>
      <ErrorBox problem={save.problem} />
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
